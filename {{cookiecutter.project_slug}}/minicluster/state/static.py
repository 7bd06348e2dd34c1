"""Rows of a table in bulk: `read_table` of any table, `write_table` of a static one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..errors import YtError, generic, not_supported
from . import rows, wire
from .schema import TableSchema, check_value, violation
from .tablets import Table

# client/table_client/public.h
SORT_ORDER_VIOLATION = 301
UNIQUE_KEY_VIOLATION = 306


def with_rows(table: Table, items: Iterable[Mapping[str, Any]], *, append: bool) -> Table:
    """The static table with these rows instead of its own, or after them. Raises: YtError."""
    if table.dynamic:
        # client/api: the message of the real client
        raise generic(
            '"write_table" API is not supported for dynamic tables; use "insert_rows" instead'
        )
    schema = table.schema
    names, written = rows.encode(schema, items, table.static_names if append else ())
    if schema.strict and len(names) > len(schema.columns):
        raise violation(f'Unknown column "{names[len(schema.columns)]}" in strict schema')
    added = [_complete(schema, row) for row in written]
    result = [*table.static_rows, *added] if append else added
    if schema.sorted:
        _check_order(schema, result)
    return replace(table, static_rows=result, static_names=names)


def _complete(schema: TableSchema, row: bytes) -> bytes:
    """The row with a value, checked, for every column of the schema."""
    pieces = wire.chunks(row)
    given = {column: (kind, value) for column, kind, value in wire.values(row)}
    for index, column in enumerate(schema.columns):
        check_value(column, *given.get(index, (wire.NULL, None)))
        if index not in pieces:
            pieces[index] = wire.encode_value(index, wire.NULL, None)
    return wire.from_chunks([pieces[index] for index in sorted(pieces)])


def _check_order(schema: TableSchema, stored: Sequence[bytes]) -> None:
    keys = [rows.key_of(row, schema.key_count) for row in stored]
    for before, after in pairwise(keys):
        if before > after:
            raise YtError(SORT_ORDER_VIOLATION, "Sort order violation", _shown(before, after))
        if schema.unique_keys and before == after:
            raise YtError(UNIQUE_KEY_VIOLATION, "Duplicate key", _shown(before))


def _shown(*keys: rows.Key) -> dict[str, Any]:
    return {"keys": [[str(value) for value in key[1::2]] for key in keys]}


def all_rows(table: Table) -> list[bytes]:
    """Every row in order: by key, or by tablet and row index.

    Of a dynamic table a real cluster shows what has been flushed to chunks, or everything with
    `@enable_dynamic_store_read`; here rows count as flushed at once (model).
    """
    if not table.dynamic:
        return table.static_rows
    if table.sorted:
        return [row for _, row in table.data.scan()]
    return [row for tablet in table.tablets for row in tablet.data.rows]


def names_of(table: Table) -> list[str]:
    """The name table of `all_rows`: the schema's columns, then those that no schema names."""
    return table.static_names or [column.name for column in table.schema.columns]


def read(
    table: Table,
    *,
    columns: Sequence[str] | None = None,
    ranges: Sequence[Mapping[str, Any]] | None = None,
) -> wire.Rowset:
    """Rows of the ranges of a rich path, one after the other; unknown columns are left out."""
    found = all_rows(table)
    if ranges is not None:
        found = [row for part in ranges for row in _range(table, found, part)]
    described = table.schema.rowset_columns()
    described += [wire.RowsetColumn(name, wire.ANY) for name in names_of(table)[len(described) :]]
    if columns is None:
        return wire.Rowset(described, list(found))
    known = {column.name: index for index, column in enumerate(described)}
    wanted = [known[name] for name in dict.fromkeys(columns) if name in known]
    selected: list[bytes | None] = []
    for row in found:
        pieces = wire.chunks(row)
        selected.append(
            wire.from_chunks(
                [
                    wire.renumbered(pieces[index], place)
                    for place, index in enumerate(wanted)
                    if index in pieces
                ]
            )
        )
    return wire.Rowset([described[index] for index in wanted], selected)


def _range(table: Table, found: list[bytes], part: Mapping[str, Any]) -> list[bytes]:
    if "exact" in part:
        begin = _position(table, found, part["exact"], after=False)
        end = _position(table, found, part["exact"], after=True)
    else:
        lower, upper = part.get("lower_limit") or {}, part.get("upper_limit") or {}
        begin = _position(table, found, lower, after=False) if lower else 0
        end = _position(table, found, upper, after=False) if upper else len(found)
    return found[begin:end]


def _position(table: Table, found: list[bytes], limit: Mapping[str, Any], *, after: bool) -> int:
    """How many rows come before a limit, or with `after` before the first one beyond it."""
    if set(limit) == {"row_index"}:
        return max(0, int(limit["row_index"])) + after
    if set(limit) != {"key"}:
        raise not_supported(f"A range limit of {sorted(limit)}")
    if not table.sorted:
        raise generic("A table that is not sorted cannot be read by key")
    key = rows.key_from_yson(table.schema, limit["key"])
    keys = [rows.key_of(row, len(key) // 2) for row in found]
    return sum(other < key or (after and other == key) for other in keys)
