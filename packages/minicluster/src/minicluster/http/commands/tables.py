"""Commands on dynamic tables: their tablets and their rows."""

from __future__ import annotations

from typing import Any

from ...core.errors import generic, not_supported
from ...query import Statistics, select
from ...rows.from_wire import DELETE, UPDATE, WRITE
from ...rows.from_yson import require_keys
from ...rows.named import shown
from ...tables import row_locks
from ..registry import STRUCTURED, TABULAR, Invocation, WithParameters, command


def _tablet_range(call: Invocation) -> tuple[int | None, int | None]:
    return call.integer("first_tablet_index"), call.integer("last_tablet_index")


@command("mount_table", volatile=True)
def mount_table(call: Invocation) -> None:
    call.cluster.tables.mount(call.path(), *_tablet_range(call), freeze=call.flag("freeze"))


@command("unmount_table", volatile=True)
def unmount_table(call: Invocation) -> None:
    call.cluster.tables.unmount(call.path(), *_tablet_range(call))


@command("remount_table", volatile=True)
def remount_table(call: Invocation) -> None:
    call.cluster.tables.remount(call.path(), *_tablet_range(call))


@command("freeze_table", volatile=True)
def freeze_table(call: Invocation) -> None:
    call.cluster.tables.freeze(call.path(), *_tablet_range(call))


@command("unfreeze_table", volatile=True)
def unfreeze_table(call: Invocation) -> None:
    call.cluster.tables.unfreeze(call.path(), *_tablet_range(call))


@command("reshard_table", volatile=True)
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


@command("trim_rows", volatile=True)
def trim_rows(call: Invocation) -> None:
    call.cluster.tables.trim(
        call.path(), call.number("tablet_index"), call.number("trimmed_row_count")
    )


@command("get_tablet_infos", output=STRUCTURED)
def get_tablet_infos(call: Invocation) -> Any:
    indexes = call.integers("tablet_indexes")
    return {"tablets": call.cluster.tables.tablet_infos(call.path(), indexes)}


@command("insert_rows", input=TABULAR, volatile=True, heavy=True)
def insert_rows(call: Invocation) -> None:
    path, tables = call.path(), call.cluster.tables
    schema, update = tables.dynamic(path)[1].schema, call.flag("update")
    if update and not schema.sorted:
        raise generic('Cannot use "update" mode for ordered tables')
    kind = UPDATE if update else WRITE
    tables.modify_items(
        path, kind, call.rows(schema), tx=call.tablet_tx, atomicity=_atomicity(call)
    )


def _atomicity(call: Invocation) -> str:
    found = str(call.get("atomicity") or "full")
    if found not in ("full", "none"):
        raise generic(f'Error parsing EAtomicity value "{found}"')
    return found


@command("delete_rows", input=TABULAR, volatile=True, heavy=True)
def delete_rows(call: Invocation) -> None:
    path, tables = call.path(), call.cluster.tables
    tables.modify_items(path, DELETE, _keys(call), tx=call.tablet_tx, atomicity=_atomicity(call))


@command("lock_rows", input=TABULAR, volatile=True, heavy=True)
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
    nulls = {column.name: None for column in keys if not column.required}
    return [nulls | item for item in found] if nulls else found


@command("lookup_rows", input=TABULAR, output=TABULAR, heavy=True)
def lookup_rows(call: Invocation) -> Any:
    path, tables = call.path(), call.cluster.tables
    names, keys = tables.encode(path, _keys(call))
    rowset = tables.lookup(
        path,
        keys,
        names,
        columns=call.strings("column_names"),
        timestamp=_timestamp(call),
        keep_missing=call.flag("keep_missing_rows"),
    )
    return shown(rowset)


@command("select_rows", output=TABULAR, heavy=True)
def select_rows(call: Invocation) -> Any:
    statistics = Statistics() if call.flag("enable_statistics") else None
    rowset = select(
        call.cluster.tables,
        call.string("query"),
        _timestamp(call),
        join_without_key=call.flag("allow_join_without_index"),
        statistics=statistics,
    )
    rows = shown(rowset)
    return rows if statistics is None else WithParameters(rows, statistics.to_yson())


def _timestamp(call: Invocation) -> int | None:
    """Return the transaction's timestamp, or the one given; None for what is committed now."""
    transaction = call.tablet_tx
    if transaction is not None:
        return transaction.start_timestamp
    return call.integer("timestamp")
