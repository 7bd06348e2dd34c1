"""Cypress: nodes, attributes, links and locks."""

from __future__ import annotations

from typing import Any

from yt import yson

from ...control.parameters import NO_QUOTA, TUNING, VIRTUAL, Harmless, Rule, only, read
from ...core.errors import generic
from ...tables.concatenate import concatenate
from ..messages import set_guid, text
from ..service import Invocation, method

_CLONE: dict[str, Rule] = {
    **read(
        "src_path dst_path recursive force preserve_account preserve_owner "
        "preserve_acl preserve_creation_time preserve_modification_time "
        "preserve_expiration_time preserve_expiration_timeout"
    ),
    "allow_secondary_index_abandonment": Harmless("tables have no secondary indices"),
    "enable_cross_cell_copying": NO_QUOTA,
    "pessimistic_quota_check": NO_QUOTA,
}

LOCK_MODES = {1: "snapshot", 2: "shared", 3: "exclusive"}


def to_yson(value: Any) -> bytes:
    data: bytes = yson.dumps(value, yson_format="binary")
    return data


def from_yson(data: bytes) -> Any:
    """Return the value of YSON text. Raises YtError if it is not YSON."""
    try:
        return yson.loads(data)
    except (yson.YsonError, ValueError) as error:
        raise generic(f"Error parsing YSON: {error}") from None


def attributes(dictionary: Any) -> dict[str, Any]:
    """Return the value of a TAttributeDictionary."""
    return {text(item.key): from_yson(item.value) for item in dictionary.attributes}


def wanted_attributes(message: Any) -> list[str] | None:
    """Return the attributes that a Get or List asks for beside each node; None for none."""
    if message.HasField("legacy_attributes"):
        # "All" is what a client says that asks for none in particular: the proxy passes on no
        # filter, and the master answers without attributes.
        if message.legacy_attributes.all:
            return None
        return [text(key) for key in message.legacy_attributes.keys]
    if message.HasField("attributes"):
        keys = [*message.attributes.keys, *message.attributes.paths]
        return [text(key) for key in keys]
    return None


@method(
    "GetNode",
    parameters={
        **read("path attributes legacy_attributes"),
        "max_size": VIRTUAL,
        "options": VIRTUAL,
    },
)
def get_node(call: Invocation) -> None:
    message = call.message
    value = call.cluster.cypress.get(
        text(message.path), tx=call.transaction, attributes=wanted_attributes(message)
    )
    call.reply.value = to_yson(value)


@method("ListNode", parameters=read("path max_size attributes legacy_attributes"))
def list_node(call: Invocation) -> None:
    message = call.message
    names = call.cluster.cypress.list(
        text(message.path),
        tx=call.transaction,
        attributes=wanted_attributes(message),
        max_size=message.max_size if message.HasField("max_size") else None,
    )
    call.reply.value = to_yson(names)


@method("ExistsNode", parameters=read("path"))
def exists_node(call: Invocation) -> None:
    call.reply.exists = call.cluster.cypress.exists(text(call.message.path), tx=call.transaction)


@method("SetNode", parameters=read("path value recursive force"))
def set_node(call: Invocation) -> None:
    message = call.message
    call.cluster.cypress.set(
        text(message.path),
        from_yson(message.value),
        tx=call.transaction,
        recursive=message.recursive,
        force=message.force,
    )


@method("MultisetAttributesNode", parameters={**read("path subrequests"), "force": only(False)})
def multiset_attributes_node(call: Invocation) -> None:
    message = call.message
    given = {text(item.attribute): from_yson(item.value) for item in message.subrequests}
    call.cluster.cypress.multiset_attributes(text(message.path), given, tx=call.transaction)


@method(
    "CreateNode",
    parameters=read(
        "path type attributes recursive force ignore_existing lock_existing ignore_type_mismatch"
    ),
)
def create_node(call: Invocation) -> None:
    message = call.message
    node_id = call.cluster.cypress.create(
        call.cluster.kinds.type_of_code(message.type),
        text(message.path),
        tx=call.transaction,
        attributes=attributes(message.attributes),
        recursive=message.recursive,
        ignore_existing=message.ignore_existing,
        force=message.force,
        lock_existing=message.lock_existing,
        ignore_type_mismatch=message.ignore_type_mismatch,
    )
    set_guid(call.reply.node_id, node_id)


@method("RemoveNode", parameters=read("path recursive force"))
def remove_node(call: Invocation) -> None:
    message = call.message
    call.cluster.cypress.remove(
        text(message.path), tx=call.transaction, recursive=message.recursive, force=message.force
    )


def _preserved(message: Any) -> dict[str, bool]:
    """Return the options of a copy that say what the clone keeps."""
    return {name: getattr(message, name) for name in _PRESERVE}


_PRESERVE = (
    "preserve_account",
    "preserve_owner",
    "preserve_acl",
    "preserve_creation_time",
    "preserve_modification_time",
    "preserve_expiration_time",
    "preserve_expiration_timeout",
)


@method("CopyNode", parameters={**_CLONE, **read("ignore_existing lock_existing")})
def copy_node(call: Invocation) -> None:
    message = call.message
    node_id = call.cluster.cypress.copy(
        text(message.src_path),
        text(message.dst_path),
        tx=call.transaction,
        recursive=message.recursive,
        force=message.force,
        ignore_existing=message.ignore_existing,
        lock_existing=message.lock_existing,
        **_preserved(message),
    )
    set_guid(call.reply.node_id, node_id)


@method("MoveNode", parameters=_CLONE)
def move_node(call: Invocation) -> None:
    message = call.message
    node_id = call.cluster.cypress.move(
        text(message.src_path),
        text(message.dst_path),
        tx=call.transaction,
        recursive=message.recursive,
        force=message.force,
        **_preserved(message),
    )
    set_guid(call.reply.node_id, node_id)


@method("ConcatenateNodes", parameters={**read("src_paths dst_path"), "fetcher": TUNING})
def concatenate_nodes(call: Invocation) -> None:
    message = call.message
    sources = [text(path) for path in message.src_paths]
    concatenate(call.cluster.cypress, sources, text(message.dst_path), tx=call.transaction)


@method(
    "LinkNode",
    parameters=read("src_path dst_path attributes recursive force ignore_existing lock_existing"),
)
def link_node(call: Invocation) -> None:
    message = call.message
    node_id = call.cluster.cypress.link(
        text(message.src_path),
        text(message.dst_path),
        tx=call.transaction,
        attributes=attributes(message.attributes),
        recursive=message.recursive,
        ignore_existing=message.ignore_existing,
        lock_existing=message.lock_existing,
        force=message.force,
    )
    set_guid(call.reply.node_id, node_id)


@method("LockNode", parameters=read("path mode waitable child_key attribute_key"))
def lock_node(call: Invocation) -> None:
    message = call.message
    mode = LOCK_MODES.get(message.mode)
    if mode is None:
        raise generic(f"Unknown lock mode {message.mode}")
    lock = call.cluster.cypress.lock(
        text(message.path),
        mode,
        tx=call.transaction,
        waitable=message.waitable,
        child_key=text(message.child_key) or None,
        attribute_key=text(message.attribute_key) or None,
    )
    set_guid(call.reply.node_id, lock["node_id"])
    set_guid(call.reply.lock_id, lock["lock_id"])
    call.reply.revision = lock["revision"]


@method("UnlockNode", parameters=read("path"))
def unlock_node(call: Invocation) -> None:
    call.cluster.cypress.unlock(text(call.message.path), tx=call.transaction)
