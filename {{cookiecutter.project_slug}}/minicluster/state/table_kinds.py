"""The node kinds `table`, `queue_consumer` and `queue_producer`, and their attributes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yt import yson

from ..errors import generic
from . import wire
from .branches import MISSING
from .nodes import kind
from .ordered import OrderedData
from .ordered import data_weight as row_weight
from .producers import PRODUCER_SCHEMA
from .queue_agent import REPORTS, reports
from .queues import CONSUMER_SCHEMA
from .rows import Key
from .tablets import MOUNTED, UNMOUNTED, Table, Tablet, cell_of, new_table

if TYPE_CHECKING:
    from .cluster import Cluster
    from .nodes import Node

TABLE = 401
QUEUE_CONSUMER = 1700
QUEUE_PRODUCER = 1701

Get = Callable[["Cluster", "Node"], Any]


def _table(node: Node) -> Table:
    assert isinstance(node.payload, Table)
    return node.payload


def _of(get: Callable[[Table], Any]) -> Get:
    """An attribute that follows from the table alone."""
    return lambda cluster, node: get(_table(node))


def _dynamic(get: Callable[[Table], Any]) -> Get:
    """An attribute that static tables do not have."""
    return lambda cluster, node: get(_table(node)) if _table(node).dynamic else MISSING


def pivot_to_yson(pivot: Key) -> list[Any]:
    """A pivot key as a list of YSON values."""
    return [
        None if code == wire.NULL else wire.to_python(code, value)
        for code, value in zip(pivot[::2], pivot[1::2], strict=True)
    ]


def _tablets(cluster: Cluster, node: Node) -> Any:
    table = _table(node)
    if not table.dynamic:
        return MISSING
    result = []
    for index, tablet in enumerate(table.tablets):
        described: dict[str, Any] = {
            "index": index,
            "tablet_id": tablet.id,
            "state": tablet.state,
            "cell_id": cell_of(cluster, tablet),
            "mount_revision": yson.YsonUint64(tablet.mount_revision),
            "statistics": {"unmerged_row_count": len(tablet.data.rows), "tablet_count": 1},
        }
        if table.sorted:
            described["pivot_key"] = pivot_to_yson(tablet.pivot)
        else:
            described["trimmed_row_count"] = tablet.data.trimmed
            described["flushed_row_count"] = tablet.data.total
        result.append(described)
    return result


def _weight(table: Table) -> int:
    if not table.dynamic:
        return sum(map(row_weight, table.static_rows))
    if table.sorted:
        return sum(row_weight(row) for _, row in table.data.scan())
    return sum(row_weight(row) for tablet in table.tablets for row in tablet.data.rows)


def _statistics(table: Table) -> dict[str, Any]:
    states = [tablet.state for tablet in table.tablets]
    return {
        "row_count": table.row_count(),
        "tablet_count": len(states),
        "tablet_count_per_state": {state: states.count(state) for state in set(states)},
    }


def _chunk_count(table: Table) -> int:
    return 1 if table.row_count() else 0  # model: rows are not cut into chunks here


def _agent(name: str) -> Get:
    return lambda cluster, node: cluster.queues.agent.report(node, name)


def _stored(name: str, default: Any) -> Get:
    """A settable attribute that a table has even when nobody has set it."""
    return lambda cluster, node: node.attributes.get(name, default)


def _store(name: str) -> Callable[[Cluster, Node, Any], None]:
    def set_attribute(cluster: Cluster, node: Node, value: Any) -> None:
        node.attributes[name] = value
        cluster.queues.agent.wake()

    return set_attribute


def _set_atomicity(cluster: Cluster, node: Node, value: Any) -> None:
    table = _table(node)
    if value not in ("full", "none"):
        raise generic(f'Error parsing atomicity value "{value}"')
    if any(tablet.state != UNMOUNTED for tablet in table.tablets):
        raise generic(
            "Cannot change table atomicity mode since not all of its tablets are in "
            '"unmounted" state'
        )
    table.atomicity = str(value)


def _flushed(cluster: Cluster, node: Node) -> Any:
    return yson.YsonUint64(cluster.clock.timestamp()) if _table(node).dynamic else MISSING


# Names and defaults: documentation, "dynamic tables" and "static tables", attributes.
SETTINGS: dict[str, Any] = {
    "auto_trim_config": {"enable": False},
    "commit_ordering": "weak",
    "compression_codec": "lz4",
    "enable_dynamic_store_read": False,
    "erasure_codec": "none",
    "in_memory_mode": "none",
    "optimize_for": "lookup",
    "primary_medium": "default",
    "replication_factor": 3,
    "tablet_cell_bundle": "default",
    "treat_as_queue_consumer": False,
    "treat_as_queue_producer": False,
}

BUILTIN: dict[str, Get] = {
    "atomicity": _of(lambda table: table.atomicity),
    "chunk_count": _of(_chunk_count),
    "chunk_row_count": _of(Table.row_count),
    "compressed_data_size": _of(_weight),
    "data_weight": _of(_weight),
    "dynamic": _of(lambda table: table.dynamic),
    "expected_tablet_state": _dynamic(lambda table: table.state),
    "key_columns": _of(lambda table: table.schema.key_columns),
    "last_commit_timestamp": _dynamic(lambda table: yson.YsonUint64(table.last_commit)),
    "pivot_keys": _dynamic(lambda table: [pivot_to_yson(tablet.pivot) for tablet in table.tablets]),
    "row_count": _of(Table.row_count),
    "schema": _of(lambda table: table.schema.to_yson()),
    "schema_mode": _of(lambda table: table.schema_mode),
    "sorted": _of(lambda table: table.sorted),
    "sorted_by": _of(lambda table: table.schema.key_columns),
    "tablet_count": _dynamic(lambda table: len(table.tablets)),
    "tablet_state": _of(lambda table: table.state),
    "tablet_statistics": _dynamic(_statistics),
    "tablets": _tablets,
    "uncompressed_data_size": _of(_weight),
    # Stores count as flushed as soon as they are written (model).
    "unflushed_timestamp": _flushed,
    "unmerged_row_count": _of(Table.row_count),
    **{name: _agent(name) for name in REPORTS},
    **{name: _stored(name, default) for name, default in SETTINGS.items()},
}

# Shown as entities by a `get` of all attributes.
_OF_TABLETS = frozenset({"tablets", "pivot_keys", "tablet_statistics"})
OPAQUE = frozenset({"schema", *_OF_TABLETS, *REPORTS})


def _absent(node: Node) -> frozenset[str]:
    missing = {name for name in REPORTS if not reports(node, name)}
    return frozenset(missing if _table(node).dynamic else missing | _OF_TABLETS)


SETTABLE: dict[str, Callable[[Cluster, Node, Any], None]] = {
    "atomicity": _set_atomicity,
    **{name: _store(name) for name in SETTINGS},
}


def _create_table(cluster: Cluster, attributes: dict[str, Any]) -> Table:
    return new_table(attributes)


def _create_consumer(cluster: Cluster, attributes: dict[str, Any]) -> Table:
    attributes.setdefault("treat_as_queue_consumer", True)
    attributes.update(dynamic=True)
    return _mounted(cluster, new_table(attributes, CONSUMER_SCHEMA))


def _create_producer(cluster: Cluster, attributes: dict[str, Any]) -> Table:
    attributes.setdefault("treat_as_queue_producer", True)
    attributes.update(dynamic=True)
    return _mounted(cluster, new_table(attributes, PRODUCER_SCHEMA))


def _mounted(cluster: Cluster, table: Table) -> Table:
    """Both are made ready for use (the server's queue_client/queue_consumer_init.cpp)."""
    for tablet in table.tablets:
        tablet.mount_revision = cluster.next_revision()
        tablet.state = MOUNTED
    return table


def _copy(cluster: Cluster, node: Node, move: bool) -> Table:
    """The table of a clone; a moved one stays mounted, a copied one is not and needs to be idle."""
    table = _table(node)
    if move:
        return table
    if any(tablet.state == MOUNTED for tablet in table.tablets):
        raise generic(
            f"Cannot copy dynamic table {node.path}: not all of its tablets are in "
            '"unmounted" or "frozen" state'
        )
    return Table(
        table.schema,
        table.dynamic,
        [Tablet(pivot=tablet.pivot, data=_copy_data(tablet.data)) for tablet in table.tablets],
        data=copy.deepcopy(table.data),
        static_rows=list(table.static_rows),
        atomicity=table.atomicity,
        schema_mode=table.schema_mode,
        last_commit=table.last_commit,
    )


def _copy_data(data: OrderedData) -> OrderedData:
    return OrderedData(list(data.rows), data.trimmed, list(data.commits), data.data_weight)


_SHARED: dict[str, Any] = {
    "copy": _copy,
    "builtin": BUILTIN,
    "absent": _absent,
    "settable": SETTABLE,
    "opaque": OPAQUE,
}
kind("table", TABLE, create=_create_table, **_SHARED)
kind("queue_consumer", QUEUE_CONSUMER, stored_as="table", create=_create_consumer, **_SHARED)
kind("queue_producer", QUEUE_PRODUCER, stored_as="table", create=_create_producer, **_SHARED)
