"""Commands on dynamic tables: their tablets and their rows."""

from __future__ import annotations

from typing import Any

from ...control.parameters import (
    AT_ONCE,
    LASTING,
    NO_REPLICAS,
    NO_UDF,
    TUNING,
    WHOLE,
    Harmless,
    Rule,
    each,
    only,
    read,
)
from ...core.errors import generic, not_supported
from ...query import Statistics, select
from ...rows import wire
from ...rows.from_wire import DELETE, UPDATE, WRITE
from ...rows.from_yson import require_keys
from ...rows.named import shown
from ...tables import row_locks
from ...tables.commands import require_lookup
from ..registry import STRUCTURED, TABULAR, Invocation, WithParameters, command

_TABLETS = read("path first_tablet_index last_tablet_index")
_WRITE: dict[str, Rule] = {
    **read("path transaction_id atomicity"),
    "durability": LASTING,
    "require_sync_replica": NO_REPLICAS,
    "table_writer": TUNING,
}
_SNAPSHOT: dict[str, Rule] = {
    **read("timestamp transaction_id"),
    "retention_timestamp": only(0),
    "versioned_read_options": only({"read_mode": "default"}),
    "replica_consistency": NO_REPLICAS,
    "use_lookup_cache": TUNING,
    "execution_pool": TUNING,
}


def _tablet_range(call: Invocation) -> tuple[int | None, int | None]:
    return call.integer("first_tablet_index"), call.integer("last_tablet_index")


@command("mount_table", parameters={**_TABLETS, **read("freeze")}, volatile=True)
def mount_table(call: Invocation) -> None:
    call.cluster.tables.mount(call.path(), *_tablet_range(call), freeze=call.flag("freeze"))


@command("unmount_table", parameters={**_TABLETS, "force": AT_ONCE}, volatile=True)
def unmount_table(call: Invocation) -> None:
    call.cluster.tables.unmount(call.path(), *_tablet_range(call))


@command("remount_table", parameters=_TABLETS, volatile=True)
def remount_table(call: Invocation) -> None:
    call.cluster.tables.remount(call.path(), *_tablet_range(call))


@command("freeze_table", parameters=_TABLETS, volatile=True)
def freeze_table(call: Invocation) -> None:
    call.cluster.tables.freeze(call.path(), *_tablet_range(call))


@command("unfreeze_table", parameters=_TABLETS, volatile=True)
def unfreeze_table(call: Invocation) -> None:
    call.cluster.tables.unfreeze(call.path(), *_tablet_range(call))


@command(
    "reshard_table",
    parameters={
        **_TABLETS,
        **read("tablet_count pivot_keys trimmed_row_counts"),
        "enable_slicing": only(False),
        "uniform": only(False),
    },
    volatile=True,
)
def reshard_table(call: Invocation) -> None:
    first, last = _tablet_range(call)
    call.cluster.tables.reshard(
        call.path(),
        tablet_count=call.integer("tablet_count"),
        pivot_keys=call.get("pivot_keys"),
        first=first,
        last=last,
        trimmed_row_counts=call.get("trimmed_row_counts"),
    )


@command("trim_rows", parameters=read("path tablet_index trimmed_row_count"), volatile=True)
def trim_rows(call: Invocation) -> None:
    call.cluster.tables.trim(
        call.path(), call.number("tablet_index"), call.number("trimmed_row_count")
    )


@command(
    "get_tablet_infos",
    parameters={**read("path tablet_indexes"), "request_errors": only(False)},
    output=STRUCTURED,
)
def get_tablet_infos(call: Invocation) -> Any:
    indexes = call.integers("tablet_indexes")
    return {"tablets": call.cluster.tables.tablet_infos(call.path(), indexes)}


@command(
    "insert_rows",
    parameters={
        **_WRITE,
        **read("update aggregate"),
        "allow_missing_key_columns": only(False),
        "lock_type": only("exclusive"),
    },
    input=TABULAR,
    volatile=True,
    heavy=True,
)
def insert_rows(call: Invocation) -> None:
    path, tables = call.path(), call.cluster.tables
    schema, update = tables.dynamic(path)[1].schema, call.flag("update")
    if update and not schema.sorted:
        raise generic('Cannot use "update" mode for ordered tables')
    kind = UPDATE if update else WRITE
    tables.modify_items(
        path,
        kind,
        call.rows(schema),
        tx=call.tablet_tx,
        atomicity=_atomicity(call),
        aggregate=call.flag("aggregate"),
    )


def _atomicity(call: Invocation) -> str:
    found = str(call.get("atomicity") or "full")
    if found not in ("full", "none"):
        raise generic(f'Error parsing EAtomicity value "{found}"')
    return found


@command(
    "delete_rows",
    parameters={**_WRITE, "lock_type": only("exclusive")},
    input=TABULAR,
    volatile=True,
    heavy=True,
)
def delete_rows(call: Invocation) -> None:
    path, tables = call.path(), call.cluster.tables
    tables.modify_items(path, DELETE, _keys(call), tx=call.tablet_tx, atomicity=_atomicity(call))


@command(
    "lock_rows",
    parameters={
        **read("path transaction_id locks lock_type"),
        "atomicity": Harmless("that of the transaction holds"),
        "durability": LASTING,
    },
    input=TABULAR,
    volatile=True,
    heavy=True,
)
def lock_rows(call: Invocation) -> None:
    path, tables, transaction = call.path(), call.cluster.tables, call.tablet_tx
    if transaction is None:
        raise generic("lock_rows needs a tablet transaction")
    asked = call.string("lock_type")
    if asked not in row_locks.TYPES:
        raise not_supported(f"lock_type={asked} (lock_rows)")
    names, keys = tables.encode(path, _keys(call))
    locks = call.strings("locks")
    if not locks:
        raise generic("Missing required parameter /locks")
    tables.lock_rows(path, keys, names, locks, row_locks.TYPES[asked], transaction)


def _keys(call: Invocation) -> list[dict[str, Any]]:
    """Return the keys of the input; an optional column that is left out is null.

    Raises YtError for another column. Source: client/driver/table_commands.cpp,
    SetTreatMissingAsNull.
    """
    schema = call.cluster.tables.sorted(call.path())[1].schema
    found = call.rows(schema)
    require_keys(schema, found)
    keys = schema.columns[: schema.key_count]
    nulls = {
        column.name: None for column in keys if not column.required and column.expression is None
    }
    return [nulls | item for item in found] if nulls else found


@command(
    "lookup_rows",
    parameters={
        **_SNAPSHOT,
        **read("path column_names keep_missing_rows enable_partial_result"),
        "cached_sync_replicas_timeout": NO_REPLICAS,
        "table_writer": TUNING,
        "versioned": only(False),
    },
    input=TABULAR,
    output=TABULAR,
    heavy=True,
)
def lookup_rows(call: Invocation) -> Any:
    path, tables = call.path(), call.cluster.tables
    require_lookup(call.flag("enable_partial_result"), call.flag("keep_missing_rows"))
    names, keys = tables.encode(path, _keys(call))
    rowset = tables.lookup(
        path,
        wire.join(keys),
        names,
        columns=call.strings("column_names"),
        timestamp=_timestamp(call),
        keep_missing=call.flag("keep_missing_rows"),
    )
    return shown(rowset)


@command(
    "select_rows",
    parameters={
        **_SNAPSHOT,
        **read("query allow_join_without_index enable_statistics input_row_limit"),
        "allow_full_scan": only(True),
        **each(
            "enable_code_cache execution_backend expression_builder_version "
            "max_subqueries merge_versioned_rows min_row_count_per_subquery "
            "new_range_inference range_expansion_limit verbose_logging "
            "workload_descriptor",
            TUNING,
        ),
        "fail_on_incomplete_result": WHOLE,
        "syntax_version": only(1),
        "udf_registry_path": NO_UDF,
        "use_canonical_null_relations": only(False),
    },
    output=TABULAR,
    heavy=True,
)
def select_rows(call: Invocation) -> Any:
    limit = call.integer("input_row_limit")
    is_asked = call.flag("enable_statistics")
    statistics = Statistics() if is_asked or limit is not None else None
    rowset = select(
        call.cluster.tables,
        call.string("query"),
        _timestamp(call),
        join_without_key=call.flag("allow_join_without_index"),
        statistics=statistics,
    )
    if statistics is not None:
        statistics.verify(limit)
    rows = shown(rowset)
    return WithParameters(rows, statistics.to_yson()) if is_asked and statistics else rows


def _timestamp(call: Invocation) -> int | None:
    """Return the transaction's timestamp, or the one given; None for what is committed now."""
    transaction = call.tablet_tx
    if transaction is not None:
        return transaction.start_timestamp
    return call.integer("timestamp")
