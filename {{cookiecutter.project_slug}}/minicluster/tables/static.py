"""Rows of static tables, which are written in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..errors import YtError, generic, not_supported
from ..rows import wire
from ..rows.from_wire import Key, key_of
from ..rows.from_yson import encode
from ..rows.schema import Column, TableSchema, check_value, violation
from .ordered import data_weight
from .table import Table
from .upload import Upload, upload

# client/table_client/public.h
SORT_ORDER_VIOLATION = 301
UNIQUE_KEY_VIOLATION = 306
ROW_WEIGHT_LIMIT_EXCEEDED = 308

# Documentation, "static tables", limitations: `max_row_weight` of `table_writer`.
DEFAULT_ROW_WEIGHT = 16 << 20
MAX_ROW_WEIGHT = 128 << 20

NO_ATTRIBUTES: Mapping[str, Any] = {}


def with_rows(
    table: Table,
    items: Iterable[Mapping[str, Any]],
    attributes: Mapping[str, Any] = NO_ATTRIBUTES,
    most: int = DEFAULT_ROW_WEIGHT,
) -> Table:
    """Return the static table with these rows instead of its own, or after them.

    `attributes` are those of the path, `most` is the weight that a row has to stay below. Raises
    YtError.
    """
    if table.dynamic:
        # client/api: the message of the real client
        raise generic(
            '"write_table" API is not supported for dynamic tables; use "insert_rows" instead'
        )
    wanted = upload(table, attributes)
    schema = wanted.schema
    kept = table.static_rows if wanted.append else []
    names, written = encode(schema, items, table.static_names if kept else ())
    if schema.strict and len(names) > len(schema.columns):
        raise violation(f'Unknown column "{names[len(schema.columns)]}" in strict schema')
    for row in written:
        if (weight := data_weight(row)) >= most:
            limits = {"row_weight": weight, "row_weight_limit": most}
            raise YtError(ROW_WEIGHT_LIMIT_EXCEEDED, "Row weight is too large", limits)
    result = [*kept, *(complete(schema, row) for row in written)]
    if schema.sorted:
        check_order(schema, result)
    return replaced(table, wanted, result, names)


def replaced(table: Table, wanted: Upload, rows: list[bytes], names: list[str]) -> Table:
    """Return the table with the schema that a write asked for, and with these rows."""
    return replace(
        table,
        schema=wanted.schema,
        schema_mode=wanted.schema_mode,
        static_rows=rows,
        static_names=names,
        _readers={},
    )


def complete(schema: TableSchema, row: bytes) -> bytes:
    """Return the row with a value, checked, for every column of the schema."""
    pieces = wire.chunks(row)
    given = {column: (kind, value) for column, kind, value in wire.values(row)}
    for index, column in enumerate(schema.columns):
        kind, value = given.get(index, (wire.NULL, None))
        check_value(column, kind, value)
        if column.sort_order and kind == wire.ANY:
            raise not_supported(f'a list or a map in the key column "{column.name}"')
        if index not in pieces:
            pieces[index] = wire.encode_value(index, wire.NULL, None)
    return wire.from_chunks([pieces[index] for index in sorted(pieces)])


def check_order(schema: TableSchema, stored: Sequence[bytes]) -> None:
    keys = [key_of(row, schema.key_count) for row in stored]
    for before, after in pairwise(keys):
        if before > after:
            raise YtError(SORT_ORDER_VIOLATION, "Sort order violation", _shown(before, after))
        if schema.unique_keys and before == after:
            raise YtError(UNIQUE_KEY_VIOLATION, "Duplicate key", _shown(before))


def _shown(*keys: Key) -> dict[str, Any]:
    return {"keys": [[str(value) for value in key[1::2]] for key in keys]}


def all_rows(table: Table) -> list[bytes]:
    """Return every row in order: by key, or by tablet and row index."""
    if not table.dynamic:
        return table.static_rows
    if table.sorted:
        return [row for _, row in table.data.scan()]
    return [row for tablet in table.tablets for row in tablet.data.rows]


def columns_of(table: Table) -> list[Column]:
    """Return the columns that `all_rows` numbers: the schema's, then those that no schema names."""
    extra = table.static_names[len(table.schema.columns) :]
    return [*table.schema.columns, *(Column(name, "any", "yson") for name in extra)]
