"""`//sys`: what a fresh cluster has, and the objects in it that are made by name."""

from __future__ import annotations

from typing import Any

from ..core import ids
from ..core.errors import generic, not_supported
from . import subjects
from .commands import Cypress
from .kinds import Kind, Kinds
from .model import escape
from .settings import SYS_NODE

TABLET_CELLS = 1

FOLDERS = (
    ("account_map", 414),
    ("user_map", 415),
    ("group_map", 416),
    ("medium_map", 420),
    ("tablet_cell_map", 423),
    ("tablet_cell_bundle_map", 424),
)
OBJECTS = (
    ("account", 500),
    ("medium", 408),
    ("tablet_cell_bundle", ids.TABLET_CELL_BUNDLE),
)


def register(kinds: Kinds) -> None:
    """Add the kinds of the objects in `//sys` and of their folders."""
    for type, code in FOLDERS:
        kinds.add(Kind(type, code, composite=True))
    for type, code in OBJECTS:
        kinds.add(Kind(type, code))
    kinds.add(SYS_NODE)
    # Tablet cells are listed under their ids.
    kinds.add(Kind("tablet_cell", ids.TABLET_CELL, identify=lambda name: name))


def _allow(group: str, *permissions: str) -> list[dict[str, Any]]:
    return [{"action": "allow", "subjects": [group], "permissions": list(permissions)}]


ACLS = {
    "/": _allow("everyone", "read"),
    "//tmp": _allow("users", "read", "write", "remove"),
}
"""The access control lists of a fresh cluster (cypress_manager.cpp, world_initializer.cpp)."""

_LIMITS = {
    "node_count": 1_000_000,
    "chunk_count": 1_000_000,
    "tablet_count": 100_000,
    "tablet_static_memory": 1 << 40,
    "disk_space_per_medium": {"default": 1 << 40},
}


def populate(cypress: Cypress, cluster_name: str) -> None:
    """Make the nodes that a fresh cluster has."""
    cypress.create("sys_node", "//sys")
    for path in ("//home", "//tmp"):
        cypress.create("map_node", path)
    cypress.set("//sys/@cluster_name", cluster_name)
    cypress.set("//sys/@primary_cell_tag", ids.CELL_TAG)
    cypress.set("//sys/@cluster_connection", {"cluster_name": cluster_name})
    for name, type in (
        ("accounts", "account_map"),
        ("users", "user_map"),
        ("groups", "group_map"),
        ("media", "medium_map"),
        ("tablet_cells", "tablet_cell_map"),
        ("tablet_cell_bundles", "tablet_cell_bundle_map"),
        ("transactions", "transaction_map"),
        ("topmost_transactions", "topmost_transaction_map"),
        ("locks", "lock_map"),
    ):
        cypress.create(type, f"//sys/{name}")
    for name in ("sys", "tmp", "intermediate", "default"):
        _object(cypress, "account", "accounts", name, resource_limits=_LIMITS)
    for name in ("root", "guest", "job", "scheduler"):
        _object(cypress, "user", "users", name, banned=False)
    for name in ("everyone", "users", "superusers", "admins"):
        _object(cypress, "group", "groups", name)
    for member, group in subjects.MEMBERS:
        subjects.add_member(cypress, member, group)
    for path, acl in ACLS.items():
        cypress.set(f"{path}/@acl", acl)
    cypress.set("//@inherit_acl", False)
    _object(cypress, "medium", "media", "default", index=0)
    _object(
        cypress,
        "tablet_cell_bundle",
        "tablet_cell_bundles",
        "default",
        health="good",
        tablet_cell_count=TABLET_CELLS,
        options={"changelog_account": "sys", "snapshot_account": "sys"},
        resource_limits={"tablet_count": 100_000, "tablet_static_memory": 1 << 40},
    )
    for _ in range(TABLET_CELLS):
        _object(
            cypress,
            "tablet_cell",
            "tablet_cells",
            None,
            health="good",
            tablet_cell_bundle="default",
            state="good",
            status={"health": "good", "decommissioned": False},
            peers=[{"state": "leading", "address": "localhost:9012"}],
        )
    for path in (
        "//sys/cluster_nodes",
        "//sys/http_proxies",
        "//sys/rpc_proxies",
        "//sys/operations",
        "//sys/queue_agents",
        "//sys/scheduler",
        "//sys/tokens",
    ):
        cypress.create("map_node", path)


_FOLDERS = {
    "account": "accounts",
    "user": "users",
    "group": "groups",
    "tablet_cell_bundle": "tablet_cell_bundles",
}


def create_object(
    cypress: Cypress,
    kinds: Kinds,
    type: str,
    attributes: dict[str, Any],
    *,
    ignore_existing: bool = False,
) -> str:
    """Return the id of a new object that has a name instead of a path."""
    kinds.named(type)
    if type == "tablet_cell":
        given = {"health": "good", "tablet_cell_bundle": "default", **attributes}
        return _object(cypress, type, "tablet_cells", None, **given)
    if type not in _FOLDERS:
        raise not_supported(f'creating an object of type "{type}" without a path')
    name = attributes.get("name")
    if not isinstance(name, str) or not name:
        raise generic('Attribute "name" is not found')
    path = f"//sys/{_FOLDERS[type]}/{escape(name)}"
    if ignore_existing and cypress.exists(path):
        return cypress.resolve(path).id
    made = _object(cypress, type, _FOLDERS[type], **attributes)
    subjects.register_new(cypress, name, type)
    return made


def _object(cypress: Cypress, type: str, folder: str, name: str | None, **attributes: Any) -> str:
    key = name or ids.new(ids.TABLET_CELL)
    given = {**attributes, "name": key} if name else attributes
    path = f"//sys/{folder}/{escape(key)}"
    return cypress.create(type, path, attributes=given)
