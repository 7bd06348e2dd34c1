"""Whether a request has changed anything, and whether the state is all of a piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minicluster.cluster import Cluster
from minicluster.cypress.model import Node
from minicluster.tables.table import Table


def fingerprint(cluster: Cluster) -> object:
    """Return a value that is equal before and after a request unless it has changed anything."""
    cluster.tick()
    return (
        [_node(node) for node in cluster.cypress.nodes.values()],
        [
            (identifier, len(tx.made), list(tx.locks), [_branch(b) for b in tx.branches.values()])
            for identifier, tx in cluster.transactions.running.items()
        ],
        [
            (identifier, _buffers(tx))
            for identifier, tx in vars(cluster.tablet_transactions)["_alive"].items()
        ],
        [repr(registration) for registration in cluster.queues.registrations()],
    )


def _node(node: Node) -> object:
    return (
        node.id,
        node.name,
        node.revision,
        repr(node.attributes),
        list(node.children),
        [(lock.id, lock.state) for lock in node.locks],
        node.made_in,
        _payload(node.payload),
    )


def _payload(payload: Any) -> object:
    if not isinstance(payload, Table):
        return repr(payload)
    return (
        payload.dynamic,
        payload.schema,
        payload.atomicity,
        payload.last_commit,
        len(payload.static_rows),
        [
            (tablet.id, tablet.state, tablet.data.total, tablet.data.trimmed, tablet.data.commits)
            for tablet in payload.tablets
        ],
        sum(payload.data.last_write(key) for key in payload.data.order()),
    )


def _branch(branch: Any) -> object:
    return branch.node.id, branch.revision, repr(branch.attributes), list(branch.children)


def _buffers(transaction: Any) -> object:
    return [
        (
            identifier,
            {tablet: len(rows) for tablet, rows in buffer.appended.items()},
            list(buffer.changed),
        )
        for identifier, buffer in transaction.buffered.items()
    ]


def rows(cluster: Cluster, path: str) -> int:
    """Return the rows ever appended to a dynamic table, or there by key."""
    _, table = cluster.tables.dynamic(path)
    return sum(tablet.data.total for tablet in table.tablets) + table.data.count()


def inconsistencies(cluster: Cluster) -> Iterator[str]:
    """Yield the traces that half a change would leave behind."""
    nodes = cluster.cypress.nodes
    running = cluster.transactions.running
    for node in list(nodes.values()):
        if nodes.get(node.id) is not node:
            yield f"{node.id} is listed under another id"
        for name, child in node.children.items():
            if child.parent is not node or child.name != name or nodes.get(child.id) is not child:
                yield f"{name} is not where {node.path} says"
        if node.made_in is not None and node.made_in not in running:
            yield f"{node.path} was made in a transaction that is over"
        attached = node.parent is None or node.parent.children.get(node.name) is node
        if not attached and node.made_in is None and not running:
            yield f"{node.id} ({node.name}) is in no folder"
        for lock in node.locks:
            if running.get(lock.transaction.id) is not lock.transaction:
                yield f"{node.path} is locked by a transaction that is over"
            if lock.transaction.locks.get(lock.id) is not lock:
                yield f"a lock of {node.path} is unknown to its transaction"
        if isinstance(node.payload, Table):
            yield from _table(node, node.payload)


def _table(node: Node, table: Table) -> Iterator[str]:
    width = len(table.schema.columns)
    for tablet in table.tablets:
        ends = [end for _, end in tablet.data.commits]
        if ends != sorted(ends) or (ends and ends[-1] != tablet.data.total):
            yield f"{node.path}: commits end at {ends[-1:]}, rows at {tablet.data.total}"
        for row in tablet.data.rows:
            if int.from_bytes(row[:8], "little") != width:
                yield f"{node.path}: a row that is not of {width} values"
    pivots = [tablet.pivot for tablet in table.tablets]
    if table.sorted and pivots != sorted(pivots):
        yield f"{node.path}: pivots out of order"
    keys = table.data.order()
    if keys != sorted(set(keys)):
        yield f"{node.path}: keys out of order"
