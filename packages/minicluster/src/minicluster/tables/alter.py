"""`alter_table`: a changed schema, and static tables made dynamic or the other way round.

The rules and the wording of refusals: server/lib/table_server/schema_validation and
client/table_client/schema.cpp.
"""

from __future__ import annotations

from ..core.errors import YtError, generic
from ..rows import wire
from ..rows.from_wire import key_of
from ..rows.schema import Column, TableSchema
from ..rows.types import SCALARS
from . import static
from .ordered import OrderedData
from .row_log import RowLog
from .sorted import SortedData
from .table import Table, Tablet

INCOMPATIBLE_SCHEMAS = 316


def set_schema(table: Table, new: TableSchema) -> None:
    """Give the table another schema, and its rows the new columns. Raises YtError."""
    if table.dynamic:
        new.validate_dynamic()
    stored = static.all_rows(table)
    if stored or table.dynamic:  # a dynamic table is never taken for an empty one
        _check(table.schema, new, table.dynamic)
    if stored:
        _rewrite(table, new)
    table.static_names = []
    table.set_schema(new)
    table.schema_mode = "strong"


def _check(old: TableSchema, new: TableSchema, dynamic: bool) -> None:
    """Raise YtError unless rows of the old schema are rows of the new one.

    Source: ytlib/table_client/schema.cpp, ValidateTableSchemaUpdate.
    """
    try:
        _check_tables(old, new, dynamic)
    except YtError as error:
        raise YtError(
            INCOMPATIBLE_SCHEMAS,
            "Table schemas are incompatible",
            {"old_schema": old.to_yson(), "new_schema": new.to_yson()},
            [error],
        ) from None


def _check_tables(old: TableSchema, new: TableSchema, dynamic: bool) -> None:
    if dynamic and old.sorted != new.sorted:
        raise generic("Cannot change dynamic table type from sorted to ordered or vice versa")
    if new.sorted and not old.sorted:
        raise generic("Cannot change schema from unsorted to sorted")
    for name, before, after in (
        ("strict", old.strict, new.strict),
        ("unique_keys", old.unique_keys, new.unique_keys),
    ):
        if after and not before:
            raise generic(f'Changing "{name}" from "false" to "true" is not allowed')
    if old.strict and not new.strict:
        if old.columns != new.columns:
            raise generic(
                'Changing columns is not allowed while changing "strict" from "true" to "false"'
            )
        return
    _check_columns(old, new)
    for column in new.columns:
        if column.expression is not None and old.find(column.name) is None:
            raise generic(f'Cannot introduce a new computed column "{column.name}" after creation')
    for column in new.columns:
        if column.required and old.find(column.name) is None:
            raise generic(
                f'Cannot insert a new required column "{column.name}" into a non-empty table'
            )


def _check_columns(old: TableSchema, new: TableSchema) -> None:
    if old.strict:
        for column in old.columns:
            if new.find(column.name) is None:
                raise generic(f'Cannot remove column "{column.name}" from a strict schema')
    else:
        for column in new.columns:
            if old.find(column.name) is None:
                raise generic(f'Cannot insert a new column "{column.name}" into non-strict schema')
    places = {column.name: index for index, column in enumerate(new.columns)}
    kept = 0
    for index, column in enumerate(old.columns):
        changed = new.find(column.name)
        if changed is None:
            continue
        _check_column(column, changed)
        if column.sort_order and changed.sort_order:
            if places[column.name] != index:
                raise generic(
                    f'Cannot change position of a key column "{column.name}": '
                    f"old {index}, new {places[column.name]}"
                )
            kept = index + 1
    if kept < old.key_count and new.unique_keys:
        raise generic("Table cannot have unique keys since some of its key columns were removed")


def _check_column(old: Column, new: Column) -> None:
    """Raise YtError unless the values of the old column are values of the new one."""
    name = f'"{old.name}"'
    if not _widens(old, new) or (new.required and not old.required):
        why = _type_mismatch(old, new)
        raise YtError(
            INCOMPATIBLE_SCHEMAS, f"Type mismatch for column {name}", inner=[generic(why)]
        )
    for what, before, after in (
        ("Sort order mismatch for column", old.sort_order, new.sort_order),
        ("Expression mismatch for column", old.expression, new.expression),
        ("Aggregate mode mismatch for column", old.aggregate, new.aggregate),
    ):
        free = {"Sort": after is None, "Aggr": before is None}.get(what[:4], False)
        if before != after and not free:
            raise YtError(
                INCOMPATIBLE_SCHEMAS, f'{what} {name}: old "{before or ""}", new "{after or ""}"'
            )


def _type_mismatch(old: Column, new: Column) -> str:
    if old.wire_type != new.wire_type:
        before, after = (wire.TYPE_NAMES[column.wire_type] for column in (old, new))
        return f'Cannot change physical type from "{before}" to "{after}"'
    if new.required and not old.required:
        return f'Cannot make column "{old.name}" required'
    return f'Type "{old.type}" is incompatible with type "{new.type}"'


def _widens(old: Column, new: Column) -> bool:
    """Return whether each value of the old type is one of the new type, in the same wire form."""
    if old.type_v3 == new.type_v3:
        return True
    if old.composite or new.composite or old.wire_type != new.wire_type:
        return False
    integers = ("int", "uint")
    if old.type.startswith(integers) and new.type.startswith(integers):
        narrow, wide = SCALARS[old.type].bounds, SCALARS[new.type].bounds
        return wide is None or (
            narrow is not None and wide[0] <= narrow[0] and narrow[1] <= wide[1]
        )
    return (old.type, new.type) == ("utf8", "string")


def _rewrite(table: Table, new: TableSchema) -> None:
    """Renumber stored rows by the new schema and put nulls into its new columns."""
    places = {column.name: index for index, column in enumerate(static.columns_of(table))}
    order = [(index, places.get(column.name)) for index, column in enumerate(new.columns)]
    if all(index == place for index, place in order) and len(order) == len(places):
        return

    def moved(row: bytes) -> bytes:
        pieces = wire.chunks(row)
        return wire.from_chunks(
            [
                wire.encode_value(index, wire.NULL, None)
                if place is None or place not in pieces
                else wire.renumbered(pieces[place], index)
                for index, place in order
            ]
        )

    table.static_rows = [moved(row) for row in table.static_rows]
    for tablet in table.tablets:
        tablet.data.rows = RowLog(moved(row) for row in tablet.data.rows)
    if table.dynamic and table.sorted:
        places_before = [place for _, place in order]
        table.data.rewrite(moved, lambda row: key_of(row, new.key_count), places_before)


def set_dynamic(table: Table, dynamic: bool, timestamp: int) -> None:
    """Turn a static table into a dynamic one, or back; the rows stay. Raises YtError.

    Rows of a static table keep the time of their write, not of the change.
    """
    if dynamic == table.dynamic:
        return
    stored = static.all_rows(table)
    if not dynamic:
        table.dynamic, table.tablets, table.data = False, [], SortedData()
        table.static_rows = list(stored)
        table.static_chunks = ((len(stored), timestamp),)
        return
    table.schema.validate_dynamic()
    if len(table.static_names) > len(table.schema.columns):
        raise generic("Cannot switch mode from static to dynamic: the schema must be strict")
    times = static.times(table)
    table.dynamic, table.static_rows, table.static_names = True, [], []
    table.static_chunks = ()
    table.tablets = [Tablet()]
    if table.sorted:
        # Source: server test, integration/dynamic_tables/test_versioned_lookup.py
        # (test_versioned_lookup_early_timestamp_after_alter).
        for row, time in zip(stored, times, strict=True):
            table.data.put(key_of(row, table.schema.key_count), row, time)
    elif stored:
        data = OrderedData()
        data.append(list(stored), timestamp)
        data.flush()
        table.tablets[0].data = data
