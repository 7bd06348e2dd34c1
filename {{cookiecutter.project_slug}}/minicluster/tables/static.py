"""Rows of static tables, which are written in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..errors import YtError, generic
from ..rows import wire
from ..rows.from_wire import Key, key_of
from ..rows.from_yson import encode
from ..rows.schema import Column, TableSchema, check_value, violation
from .table import Table

# client/table_client/public.h
SORT_ORDER_VIOLATION = 301
UNIQUE_KEY_VIOLATION = 306


def with_rows(table: Table, items: Iterable[Mapping[str, Any]], *, append: bool) -> Table:
    """Return the static table with these rows instead of its own, or after them.

    Raises YtError.
    """
    if table.dynamic:
        # client/api: the message of the real client
        raise generic(
            '"write_table" API is not supported for dynamic tables; use "insert_rows" instead'
        )
    schema = table.schema
    names, written = encode(schema, items, table.static_names if append else ())
    if schema.strict and len(names) > len(schema.columns):
        raise violation(f'Unknown column "{names[len(schema.columns)]}" in strict schema')
    added = [complete(schema, row) for row in written]
    result = [*table.static_rows, *added] if append else added
    if schema.sorted:
        check_order(schema, result)
    return replace(table, static_rows=result, static_names=names)


def complete(schema: TableSchema, row: bytes) -> bytes:
    """Return the row with a value, checked, for every column of the schema."""
    pieces = wire.chunks(row)
    given = {column: (kind, value) for column, kind, value in wire.values(row)}
    for index, column in enumerate(schema.columns):
        check_value(column, *given.get(index, (wire.NULL, None)))
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
