"""Objects without a path, permissions, and what the native client has to know of a table."""

from __future__ import annotations

from typing import Any

from ...control.parameters import AT_ONCE, Harmless, read
from ...core import ids
from ...core.errors import not_supported
from ...cypress import subjects, system
from ...cypress.permissions import check_permission as decide
from ...tables.table import FROZEN, MOUNTED, UNMOUNTED
from ..messages import set_guid, text
from ..rowsets import fill_schema, packed_key
from ..service import Invocation, method
from .cypress import attributes

PERMISSIONS = {
    0x0001: "read",
    0x0002: "write",
    0x0004: "use",
    0x0008: "administer",
    0x0010: "register_queue_consumer",
    0x0020: "register_queue_consumer_vital",
    0x0100: "create",
    0x0200: "remove",
    0x0400: "mount",
    0x0800: "manage",
    0x2000: "full_read",
}
"""Bits of EPermission (core/ytree/permission.h)."""
ACTIONS = {"allow": 1, "deny": 2}
TABLET_STATES = {MOUNTED: 1, UNMOUNTED: 3, FROZEN: 5}
"""Numbers of ETabletState (client/tablet_client/public.h)."""


@method("CreateObject", parameters={**read("type attributes ignore_existing"), "sync": AT_ONCE})
def create_object(call: Invocation) -> None:
    message = call.message
    made = system.create_object(
        call.cluster.cypress,
        call.cluster.kinds,
        call.cluster.kinds.type_of_code(message.type),
        attributes(message.attributes),
        ignore_existing=message.ignore_existing,
    )
    set_guid(call.reply.object_id, made)


@method("AddMember", parameters=read("member group"))
def add_member(call: Invocation) -> None:
    message = call.message
    subjects.add_member(call.cluster.cypress, text(message.member), text(message.group))


@method("RemoveMember", parameters=read("member group"))
def remove_member(call: Invocation) -> None:
    message = call.message
    subjects.remove_member(call.cluster.cypress, text(message.member), text(message.group))


@method(
    "CheckPermission",
    parameters={
        **read("path user permission columns"),
        "vital": Harmless("the permission to register a vital consumer has a bit of its own"),
    },
)
def check_permission(call: Invocation) -> None:
    message = call.message
    permission = PERMISSIONS.get(message.permission)
    if permission is None:
        raise not_supported(f"permission={message.permission} (CheckPermission)")
    columns = [text(name) for name in message.columns.items]
    found = decide(
        call.cluster.cypress,
        text(message.path),
        text(message.user),
        permission,
        tx=call.transaction,
        columns=columns if message.HasField("columns") else None,
    )
    _fill(call.reply.result, found)
    for decision in found.get("columns", ()):
        _fill(call.reply.columns.items.add(), decision)


def _fill(result: Any, decision: dict[str, Any]) -> None:
    result.action = ACTIONS[decision["action"]]
    set_guid(result.object_id, decision.get("object_id", ids.NULL))
    set_guid(result.subject_id, ids.NULL)
    if "object_name" in decision:
        result.object_name = decision["object_name"]


@method("GetTableMountInfo", parameters=read("path"))
def get_table_mount_info(call: Invocation) -> None:
    """Answer what the native client converts rows by; it keeps the answer for a while."""
    node, table = call.cluster.tables.dynamic(text(call.message.path))
    reply = call.reply
    set_guid(reply.table_id, node.id)
    set_guid(reply.upstream_replica_id, ids.NULL)
    fill_schema(reply.schema, table.schema)
    reply.dynamic = table.dynamic
    for tablet in table.tablets:
        shown = reply.tablets.add()
        set_guid(shown.tablet_id, tablet.id)
        set_guid(shown.cell_id, call.cluster.tables.cell_of(tablet))
        shown.mount_revision = tablet.mount_revision
        shown.state = TABLET_STATES[tablet.state]
        # The keys of an ordered table have none: an empty text stands for a key that is not there.
        shown.pivot_key = packed_key(tablet.pivot) if table.sorted else b""
    reply.tablet_count = len(table.tablets)
