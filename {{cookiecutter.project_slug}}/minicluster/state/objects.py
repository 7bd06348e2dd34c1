"""Objects that are no Cypress nodes but can be asked by id, and `//sys`, which lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import ids
from ..clock import iso
from ..errors import generic, not_supported
from .branches import MISSING
from .locks import Lock
from .nodes import Node, escape, kind
from .transactions import Transaction

if TYPE_CHECKING:
    from .cluster import Cluster

TABLET_CELLS = 1


def find(cluster: Cluster, object_id: str) -> Node | None:
    """A transaction or a lock, dressed as a node so that `#id/@attribute` works on it."""
    transaction = cluster.transactions.running.get(object_id)
    if transaction is not None:
        return _transaction_node(transaction, None)
    for running in cluster.transactions.running.values():
        lock = running.locks.get(object_id)
        if lock is not None:
            return _lock_node(lock, None)
    return None


def _transaction_node(transaction: Transaction, parent: Node | None) -> Node:
    return Node(
        transaction.id,
        "transaction",
        parent,
        transaction.id,
        transaction.attributes,
        transaction,
        created=transaction.started,
        modified=transaction.pinged,
        accessed=transaction.pinged,
        owner=transaction.owner,
    )


def _lock_node(lock: Lock, parent: Node | None) -> Node:
    return Node(lock.id, "lock", parent, lock.id, {}, lock, created=lock.created)


def _transactions(cluster: Cluster, node: Node) -> dict[str, Node]:
    return {
        transaction.id: _transaction_node(transaction, node)
        for transaction in cluster.transactions.running.values()
    }


def _topmost_transactions(cluster: Cluster, node: Node) -> dict[str, Node]:
    return {
        transaction.id: _transaction_node(transaction, node)
        for transaction in cluster.transactions.running.values()
        if transaction.parent is None
    }


def _locks(cluster: Cluster, node: Node) -> dict[str, Node]:
    return {
        lock.id: _lock_node(lock, node)
        for transaction in cluster.transactions.running.values()
        for lock in transaction.locks.values()
    }


def _locked_nodes(cluster: Cluster, node: Node) -> list[str]:
    return list(dict.fromkeys(lock.node.id for lock in node.payload.locks.values()))


kind("transaction_map", 407, composite=True, virtual=_transactions)
kind("topmost_transaction_map", 418, composite=True, virtual=_topmost_transactions)
kind("lock_map", 422, composite=True, virtual=_locks)
for _type, _code in (
    ("account_map", 414),
    ("user_map", 415),
    ("group_map", 416),
    ("medium_map", 420),
    ("tablet_cell_map", 423),
    ("tablet_cell_bundle_map", 424),
):
    kind(_type, _code, composite=True)

kind(
    "transaction",
    ids.MASTER_TRANSACTION,
    builtin={
        "path": lambda cluster, node: f"#{node.id}",
        "state": lambda cluster, node: "active",
        "timeout": lambda cluster, node: round(node.payload.timeout * 1000),
        "start_time": lambda cluster, node: iso(node.payload.started),
        "last_ping_time": lambda cluster, node: iso(node.payload.pinged),
        "title": lambda cluster, node: node.payload.attributes.get("title", MISSING),
        "parent_id": lambda cluster, node: (
            node.payload.parent.id if node.payload.parent else ids.NULL
        ),
        "nested_transaction_ids": lambda cluster, node: [tx.id for tx in node.payload.children],
        "prerequisite_transaction_ids": lambda cluster, node: node.payload.prerequisites,
        "lock_ids": lambda cluster, node: list(node.payload.locks),
        "locked_node_ids": _locked_nodes,
    },
)
kind(
    "lock",
    ids.LOCK,
    builtin={
        "path": lambda cluster, node: f"#{node.id}",
        "state": lambda cluster, node: node.payload.state,
        "mode": lambda cluster, node: node.payload.request.mode,
        "node_id": lambda cluster, node: node.payload.node.id,
        "transaction_id": lambda cluster, node: node.payload.transaction.id,
        "implicit": lambda cluster, node: node.payload.implicit,
        "child_key": lambda cluster, node: node.payload.request.child_key or MISSING,
        "attribute_key": lambda cluster, node: node.payload.request.attribute_key or MISSING,
    },
)
for _type, _code in (
    ("account", 500),
    ("user", 501),
    ("group", 502),
    ("medium", 408),
    ("tablet_cell", ids.TABLET_CELL),
    ("tablet_cell_bundle", ids.TABLET_CELL_BUNDLE),
):
    kind(_type, _code)

_LIMITS = {
    "node_count": 1_000_000,
    "chunk_count": 1_000_000,
    "tablet_count": 100_000,
    "tablet_static_memory": 1 << 40,
    "disk_space_per_medium": {"default": 1 << 40},
}


def populate(cluster: Cluster) -> None:
    """The nodes that a fresh cluster has."""
    cypress = cluster.cypress
    for path in ("//sys", "//home", "//tmp"):
        cypress.create("map_node", path)
    cypress.set("//sys/@cluster_name", cluster.name)
    cypress.set("//sys/@cluster_connection", {"cluster_name": cluster.name})
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
        _object(cluster, "account", "accounts", name, resource_limits=_LIMITS)
    for name in ("root", "guest", "job", "scheduler"):
        _object(cluster, "user", "users", name, banned=False, member_of=["everyone"])
    for name in ("everyone", "users", "superusers", "admins"):
        _object(cluster, "group", "groups", name, members=[])
    _object(cluster, "medium", "media", "default", index=0)
    _object(
        cluster,
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
            cluster,
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


def create(cluster: Cluster, type: str, attributes: dict[str, Any]) -> str:
    """The id of a new object that has a name instead of a path."""
    if type == "tablet_cell":
        given = {"health": "good", "tablet_cell_bundle": "default", **attributes}
        return _object(cluster, type, "tablet_cells", None, **given)
    if type not in _FOLDERS:
        raise not_supported(f'Creating an object of type "{type}"')
    name = attributes.get("name")
    if not isinstance(name, str) or not name:
        raise generic('Attribute "name" is not found')
    return _object(cluster, type, _FOLDERS[type], **attributes)


def _object(cluster: Cluster, type: str, folder: str, name: str | None, **attributes: Any) -> str:
    key = name or ids.new(ids.TABLET_CELL)
    given = {**attributes, "name": key} if name else attributes
    path = f"//sys/{folder}/{escape(key)}"
    return cluster.cypress.create(type, path, attributes=given)
