"""The node kind `table` and its attributes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from yt import yson

from ..core.clock import Clock
from ..core.errors import generic, not_supported
from ..cypress.kinds import Getter, Kind, Kinds, Setter
from ..cypress.model import MISSING, Node
from . import retention
from .commands import Tables
from .ordered import OrderedData
from .ordered import data_weight as row_weight
from .table import MOUNTED, Table, Tablet, new_table, pivot_to_yson
from .tablets import require_unmounted

TABLE = 401


def _table(node: Node) -> Table:
    assert isinstance(node.payload, Table)
    return node.payload


def _of(get: Callable[[Table], Any]) -> Getter:
    """Return a getter for an attribute that follows from the table alone."""
    return lambda node: get(_table(node))


def _dynamic(get: Callable[[Table], Any]) -> Getter:
    """Return a getter for an attribute that static tables do not have."""
    return lambda node: get(_table(node)) if _table(node).dynamic else MISSING


def _rows(table: Table) -> Iterable[bytes]:
    if not table.dynamic:
        return table.static_rows
    if table.sorted:
        return (row for _, row in table.data.scan())
    return (row for tablet in table.tablets for row in tablet.data.rows)


def _weight(table: Table) -> int:
    return sum(map(row_weight, _rows(table)))


def _size(table: Table) -> int:
    return sum(map(len, _rows(table)))


def _statistics(table: Table) -> dict[str, Any]:
    states = [tablet.state for tablet in table.tablets]
    return {
        "row_count": table.row_count(),
        "tablet_count": len(states),
        "tablet_count_per_state": {state: states.count(state) for state in set(states)},
    }


def _chunk_count(table: Table) -> int:
    """Return how many writes there were (model: a dynamic table has one chunk)."""
    if not table.row_count():
        return 0
    return 1 if table.dynamic else max(1, len(table.static_chunks))


def _stored(name: str, default: Any) -> Getter:
    """Return a getter for a settable attribute that a table has before it is set."""
    return lambda node: node.attributes.get(name, default)


def _mount_config(node: Node) -> Any:
    return node.attributes.get("mount_config", {} if _table(node).dynamic else MISSING)


def _store(name: str) -> Setter:
    def set_attribute(node: Node, value: Any) -> None:
        node.attributes[name] = value

    return set_attribute


def _set_commit_ordering(node: Node, value: Any) -> None:
    if value not in ("weak", "strong"):
        raise generic(f'Error parsing commit ordering value "{value}"')
    require_unmounted(_table(node), "Cannot change table commit ordering mode")
    node.attributes["commit_ordering"] = str(value)


def _set_in_memory_mode(node: Node, value: Any) -> None:
    require_unmounted(_table(node), "Cannot change table memory mode")
    node.attributes["in_memory_mode"] = str(value)


def _removable(name: str, setter: Setter) -> Setter:
    def set_attribute(node: Node, value: Any) -> None:
        if value is MISSING:
            node.attributes.pop(name, None)
        else:
            setter(node, value)

    return set_attribute


def _set_mount_config(node: Node, value: Any) -> None:
    """Keep a map of settings, which are ignored (model); a value of a wrong type is refused.

    Source: server/lib/tablet_node/config.h, TCustomTableMountConfig.
    """
    if not isinstance(value, dict):
        raise generic('Error parsing "mount_config": a map was expected')
    if "max_ordered_tablet_data_weight" in value:
        raise not_supported("mount_config with max_ordered_tablet_data_weight")
    for name, kind in MOUNT_CONFIG.items():
        given = value.get(name)
        right = isinstance(given, yson.YsonBoolean | bool) if kind is bool else type(given) is kind
        if given is not None and not (right or isinstance(given, yson.YsonInt64)):
            raise generic(f"Error reading parameter /{name}: it must be {kind.__name__}")
    node.attributes["mount_config"] = value


MOUNT_CONFIG: dict[str, type] = {
    "enable_compaction_and_partitioning": bool,
    "enable_dynamic_store_read": bool,
    "enable_store_rotation": bool,
    "max_dynamic_store_row_count": int,
    "max_dynamic_store_value_count": int,
    "max_store_size": int,
    "dynamic_store_auto_flush_period": int,
}
"""Those settings of a mount whose types are checked."""


def _set_atomicity(node: Node, value: Any) -> None:
    table = _table(node)
    if value not in ("full", "none"):
        raise generic(f'Error parsing atomicity value "{value}"')
    require_unmounted(table, "Cannot change table atomicity mode")
    table.atomicity = str(value)


# Names and defaults: documentation, "dynamic tables" and "static tables", attributes.
SETTINGS: dict[str, Any] = {
    "commit_ordering": "weak",
    "compression_codec": "lz4",
    "enable_dynamic_store_read": False,
    "erasure_codec": "none",
    "in_memory_mode": "none",
    "optimize_for": "lookup",
    "primary_medium": "default",
    "queue_agent_stage": "production",
    "replication_factor": 3,
    "tablet_balancer_config": {"enable_auto_reshard": True, "enable_auto_tablet_move": True},
    "tablet_cell_bundle": "default",
    "treat_as_queue_consumer": False,
    "treat_as_queue_producer": False,
}


def _setting_of_dynamic(name: str) -> Getter:
    stored = _stored(name, SETTINGS[name])
    return lambda node: stored(node) if _table(node).dynamic else MISSING


REMOVABLE = frozenset({"enable_dynamic_store_read", "queue_agent_stage"})
"""Settings that go back to their defaults when they are removed."""

WITHOUT_DEFAULT: dict[str, Setter] = {
    "auto_trim_config": _store("auto_trim_config"),
    "mount_config": _set_mount_config,
    **retention.SETTABLE,
}
"""Settings that a table has only if it was given them."""

BUILTIN: dict[str, Getter] = {
    "atomicity": _of(lambda table: table.atomicity),
    "chunk_count": _of(_chunk_count),
    "chunk_row_count": _of(Table.row_count),
    "compressed_data_size": _of(_size),
    "data_weight": _of(_weight),
    "dynamic": _of(lambda table: table.dynamic),
    "expected_tablet_state": _dynamic(lambda table: table.state),
    "mount_config": _mount_config,
    "key_columns": _of(lambda table: table.schema.key_columns),
    "last_commit_timestamp": _dynamic(lambda table: yson.YsonUint64(table.last_commit)),
    "pivot_keys": _dynamic(lambda table: [pivot_to_yson(tablet.pivot) for tablet in table.tablets]),
    "row_count": _of(Table.row_count),
    "schema": _of(lambda table: table.schema.to_yson()),
    "schema_mode": _of(lambda table: table.schema_mode),
    "sorted": _of(lambda table: table.sorted),
    "sorted_by": _of(lambda table: table.schema.key_columns or MISSING),
    "tablet_error_count": _dynamic(lambda table: 0),
    "tablet_count": _dynamic(lambda table: len(table.tablets)),
    "tablet_state": _of(lambda table: table.state),
    "tablet_statistics": _dynamic(_statistics),
    "uncompressed_data_size": _of(_size),
    "unmerged_row_count": _of(Table.row_count),
    **{name: _stored(name, default) for name, default in SETTINGS.items()},
    "queue_agent_stage": _setting_of_dynamic("queue_agent_stage"),
    "tablet_balancer_config": _setting_of_dynamic("tablet_balancer_config"),
}

# Shown as entities by a `get` of all attributes.
_OF_TABLETS = frozenset({"tablets", "pivot_keys", "tablet_statistics"})
OPAQUE = frozenset({"schema", *_OF_TABLETS})


def _absent(node: Node) -> frozenset[str]:
    return frozenset() if _table(node).dynamic else _OF_TABLETS


SETTABLE: dict[str, Setter] = {
    "atomicity": _set_atomicity,
    **{name: _store(name) for name in SETTINGS},
    "commit_ordering": _set_commit_ordering,
    "in_memory_mode": _set_in_memory_mode,
    **{name: _removable(name, _store(name)) for name in REMOVABLE},
    **{name: _removable(name, setter) for name, setter in WITHOUT_DEFAULT.items()},
}


def _copy(node: Node, move: bool) -> Table:
    """Return the table of a clone. Raises YtError for a mounted one."""
    table = _table(node)
    if move:
        # server/master/tablet_server/tablet_manager.cpp, CloneTablet
        require_unmounted(table, "Cannot move dynamic table")
        return table
    if any(tablet.state == MOUNTED for tablet in table.tablets):
        raise generic(
            "Cannot copy dynamic table since not all of its tablets are in "
            '"frozen" or "unmounted" state'
        )
    return Table(
        table.schema,
        table.dynamic,
        [Tablet(pivot=tablet.pivot, data=_copy_data(tablet.data)) for tablet in table.tablets],
        data=copy.deepcopy(table.data),
        static_rows=list(table.static_rows),
        static_names=list(table.static_names),
        static_chunks=table.static_chunks,
        atomicity=table.atomicity,
        schema_mode=table.schema_mode,
        last_commit=table.last_commit,
    )


def _copy_data(data: OrderedData) -> OrderedData:
    return replace(
        data, rows=data.rows.copy(), commits=list(data.commits), chunks=list(data.chunks)
    )


def _restore_atomicity(table: Table, atomicity: str) -> None:
    table.atomicity = atomicity


def _tablets(tables: Tables, node: Node) -> Any:
    table = _table(node)
    if not table.dynamic:
        return MISSING
    result = []
    for index, tablet in enumerate(table.tablets):
        described: dict[str, Any] = {
            "index": index,
            "tablet_id": tablet.id,
            "state": tablet.state,
            "cell_id": tables.cell_of(tablet),
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


def register(kinds: Kinds, clock: Clock, tables: Tables) -> None:
    """Add the kind of tables."""

    def flushed(node: Node) -> Any:
        """Return the time of the last flush: now, as stores are flushed at once (model)."""
        return yson.YsonUint64(clock.timestamp()) if _table(node).dynamic else MISSING

    kinds.add(
        Kind(
            "table",
            TABLE,
            create=new_table,
            copy=_copy,
            builtin={
                **BUILTIN,
                "tablets": lambda node: _tablets(tables, node),
                "unflushed_timestamp": flushed,
            },
            settable=SETTABLE,
            removable=REMOVABLE,
            save=lambda table: table.atomicity,
            restore=_restore_atomicity,
            absent=_absent,
            opaque=OPAQUE,
        )
    )
