"""The tests' laboratory for tables: a cluster, and rows as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from yt import yson

from minicluster.cluster import Cluster
from minicluster.query import select as run_query
from minicluster.rows import wire
from minicluster.rows.from_wire import DELETE, WRITE
from minicluster.tables.transactions import Transaction

Row = dict[str, Any]

KEYED = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "string"},
    {"name": "n", "type": "int64"},
]
PLAIN = [{"name": "a", "type": "int64"}, {"name": "b", "type": "string"}]


def table(
    cluster: Cluster,
    path: str,
    columns: Iterable[Row],
    *,
    mount: bool = True,
    **attributes: Any,
) -> None:
    """Make a dynamic table; a sorted one gets unique keys."""
    columns = list(columns)
    schema = yson.to_yson_type(
        columns, attributes={"strict": True, "unique_keys": "sort_order" in columns[0]}
    )
    cluster.cypress.create(
        "table", path, attributes={"dynamic": True, "schema": schema, **attributes}
    )
    if mount:
        cluster.tables.mount(path)


def write(
    cluster: Cluster, path: str, *items: Row, tx: Transaction | None = None, kind: int = WRITE
) -> None:
    names, encoded = cluster.tables.encode(path, items)
    cluster.tables.modify(path, [(kind, row) for row in encoded], names, tx=tx)


def delete(cluster: Cluster, path: str, *keys: Row, tx: Transaction | None = None) -> None:
    write(cluster, path, *keys, tx=tx, kind=DELETE)


def lookup(cluster: Cluster, path: str, *keys: Row, **options: Any) -> list[Row | None]:
    names, encoded = cluster.tables.encode(path, keys)
    return cluster.tables.lookup(path, wire.join(encoded), names, **options).to_dicts()


def select(cluster: Cluster, query: str, timestamp: int | None = None) -> list[Row]:
    found = run_query(cluster.tables, query, timestamp).to_dicts()
    return [row for row in found if row is not None]


def pull(cluster: Cluster, queue: str, partition: int, offset: int, **options: Any) -> list[Row]:
    found = cluster.queues.pull(queue, partition, offset, **options).to_dicts()
    return [row for row in found if row is not None]
