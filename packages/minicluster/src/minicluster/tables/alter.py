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
WHY_INCOMPATIBLE = 314


def set_schema(table: Table, new: TableSchema) -> None:
    """Give the table another schema, and its rows the new columns. Raises YtError."""
    if table.dynamic:
        new.validate_dynamic()
    stored = static.all_rows(table)
    if stored:
        _check(table.schema, new)
        _rewrite(table, new)
    table.static_names = []
    table.set_schema(new)
    table.schema_mode = "strong"


def _incompatible(message: str) -> YtError:
    why = YtError(WHY_INCOMPATIBLE, message)
    return YtError(INCOMPATIBLE_SCHEMAS, "Table schemas are incompatible", inner=[why])


def _check(old: TableSchema, new: TableSchema) -> None:
    if old.sorted and not new.sorted:
        raise _incompatible("Cannot change schema from sorted to unsorted")
    if new.sorted and not old.sorted:
        raise _incompatible("Cannot change schema from unsorted to sorted")
    if old.strict and not new.strict:
        raise _incompatible('Changing "strict" from "true" to "false" is not supported here')
    if new.strict and not old.strict:
        raise _incompatible('Changing "strict" from "false" to "true" is not allowed')
    if new.unique_keys and not old.unique_keys:
        raise _incompatible('Changing "unique_keys" from "false" to "true" is not allowed')
    if new.key_columns[: old.key_count] != old.key_columns:
        raise _incompatible("Key columns cannot be removed or change their places")
    for column in old.columns:
        changed = new.find(column.name)
        if changed is None:
            raise _incompatible(f'Cannot remove column "{column.name}" from a strict schema')
        if not _widens(column, changed):
            raise _incompatible(
                f'Type mismatch for column "{column.name}": '
                f'old "{column.type}", new "{changed.type}"'
            )
        if changed.required and not column.required:
            raise _incompatible(f'Cannot make column "{column.name}" required')
    for column in new.columns:
        if column.required and old.find(column.name) is None:
            raise _incompatible(
                f'Cannot insert a new required column "{column.name}" into a non-empty table'
            )


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
    """Turn a static table into a dynamic one, or back; the rows stay. Raises YtError."""
    if dynamic == table.dynamic:
        return
    stored = static.all_rows(table)
    if not dynamic:
        table.dynamic, table.tablets, table.data = False, [], SortedData()
        table.static_rows = list(stored)
        return
    table.schema.validate_dynamic()
    if len(table.static_names) > len(table.schema.columns):
        raise generic("Cannot switch mode from static to dynamic: the schema must be strict")
    table.dynamic, table.static_rows, table.static_names = True, [], []
    table.tablets = [Tablet()]
    if table.sorted:
        for row in stored:
            table.data.put(key_of(row, table.schema.key_count), row, timestamp)
    elif stored:
        data = OrderedData()
        data.append(list(stored), timestamp)
        data.flush()
        table.tablets[0].data = data
