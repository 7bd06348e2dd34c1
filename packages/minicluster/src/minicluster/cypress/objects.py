"""Transactions and locks dressed as nodes: `#id/@attribute` and `//sys` can show them."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import ids
from ..core.clock import iso
from .kinds import Kind, Kinds
from .model import MISSING, Lock, Node, Transaction
from .transactions import Transactions


def find(transactions: Transactions, object_id: str) -> Node | None:
    """Return a transaction or a lock, as a node; None when there is neither of that id."""
    transaction = transactions.running.get(object_id)
    if transaction is not None:
        return _transaction_node(transaction, None)
    for running in transactions.running.values():
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


def _by_cell(identifiers: Iterable[str]) -> dict[str, list[str]]:
    """Return ids by the master cell that they belong to, of which there is one.

    Source: server/master/transaction_server/transaction_proxy.cpp, FetchMergeableAttribute.
    """
    return {str(ids.CELL_TAG): list(dict.fromkeys(identifiers))}


def _locked_nodes(node: Node) -> dict[str, list[str]]:
    return _by_cell(lock.node.id for lock in node.payload.locks.values())


TRANSACTION = Kind(
    "transaction",
    ids.MASTER_TRANSACTION,
    builtin={
        "path": lambda node: f"#{node.id}",
        "state": lambda node: "active",
        "timeout": lambda node: round(node.payload.timeout * 1000),
        "start_time": lambda node: iso(node.payload.started),
        "last_ping_time": lambda node: iso(node.payload.pinged),
        "title": lambda node: node.payload.attributes.get("title", MISSING),
        "parent_id": lambda node: node.payload.parent.id if node.payload.parent else ids.NULL,
        "nested_transaction_ids": lambda node: [tx.id for tx in node.payload.children],
        "prerequisite_transaction_ids": lambda node: node.payload.prerequisites,
        "lock_ids": lambda node: _by_cell(node.payload.locks),
        "locked_node_ids": _locked_nodes,
    },
)
LOCK = Kind(
    "lock",
    ids.LOCK,
    builtin={
        "path": lambda node: f"#{node.id}",
        "state": lambda node: node.payload.state,
        "mode": lambda node: node.payload.request.mode,
        "node_id": lambda node: node.payload.node.id,
        "transaction_id": lambda node: node.payload.transaction.id,
        "implicit": lambda node: node.payload.implicit,
        "child_key": lambda node: node.payload.request.child_key or MISSING,
        "attribute_key": lambda node: node.payload.request.attribute_key or MISSING,
    },
)


def register(kinds: Kinds, transactions: Transactions) -> None:
    """Add the kinds of transactions and locks, and of the maps that list them."""

    def all_transactions(node: Node) -> dict[str, Node]:
        return {tx.id: _transaction_node(tx, node) for tx in transactions.running.values()}

    def topmost(node: Node) -> dict[str, Node]:
        return {
            tx.id: _transaction_node(tx, node)
            for tx in transactions.running.values()
            if tx.parent is None
        }

    def all_locks(node: Node) -> dict[str, Node]:
        return {
            lock.id: _lock_node(lock, node)
            for tx in transactions.running.values()
            for lock in tx.locks.values()
        }

    kinds.add(Kind("transaction_map", 407, composite=True, virtual=all_transactions))
    kinds.add(Kind("topmost_transaction_map", 418, composite=True, virtual=topmost))
    kinds.add(Kind("lock_map", 422, composite=True, virtual=all_locks))
    kinds.add(TRANSACTION)
    kinds.add(LOCK)
