"""The rows that a query reads: which rows, judging by the key, and their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import generic
from ..rows import wire
from ..rows.from_wire import ROW_INDEX, TABLET_INDEX, Key
from ..rows.rowset import RowsetColumn
from ..tables.commands import Tables
from ..tables.ordered import numbered
from ..tables.table import Table, require_readable
from .ast import Binary, Expression, Literal, Name

_AFTER = 255
"""Greater than any wire type, so that `key + (_AFTER,)` comes after every longer key."""


@dataclass
class Source:
    """A table as a query sees it; column ids of its rows are positions in `columns`."""

    path: str
    table: Table
    timestamp: int | None
    columns: list[RowsetColumn]

    def rows(self, where: Expression | None) -> Iterator[bytes]:
        """Yield the rows that may satisfy the condition, sorted ones by key."""
        equal = dict(_equalities(where))
        if self.table.sorted:
            return self._sorted(equal)
        return self._ordered(equal)

    def _sorted(self, equal: dict[str, Literal]) -> Iterator[bytes]:
        prefix: Key = ()
        for column in self.table.schema.columns[: self.table.schema.key_count]:
            literal = equal.get(column.name)
            if literal is None:
                break
            if literal.value is None:
                prefix += (wire.NULL, 0)
            else:
                prefix += (column.wire_type, literal.value)
        for _, row in self.table.data.scan(self.timestamp, prefix, (*prefix, _AFTER)):
            yield row

    def _ordered(self, equal: dict[str, Literal]) -> Iterator[bytes]:
        width = len(self.table.schema.columns)
        only = equal.get(TABLET_INDEX)
        for index, tablet in enumerate(self.table.tablets):
            if only is None or only.value == index:
                data = tablet.data
                end = data.total if self.timestamp is None else data.end_at(self.timestamp)
                first, found = data.slice(data.trimmed, max(0, end - data.trimmed))
                yield from numbered(found, width, index, first)


def _equalities(where: Expression | None) -> Iterator[tuple[str, Literal]]:
    """Yield the conditions `column = constant` that must all hold."""
    match where:
        case Binary("and", left, right):
            yield from _equalities(left)
            yield from _equalities(right)
        case Binary("=", Name(name), Literal() as literal):
            yield name, literal
        case Binary("=", Literal() as literal, Name(name)):
            yield name, literal


def open_source(tables: Tables, path: str, timestamp: int | None) -> Source:
    """Return the table to read. Raises YtError TABLET_NOT_MOUNTED."""
    node, table = tables.node(path)
    if not table.dynamic:
        raise generic(f"Table {node.path} is not dynamic")
    for tablet in table.tablets:
        require_readable(tablet, node.path)
    columns = table.schema.rowset_columns()
    if not table.sorted:
        columns += [
            RowsetColumn(TABLET_INDEX, wire.INT64),
            RowsetColumn(ROW_INDEX, wire.INT64),
        ]
    return Source(node.path, table, timestamp, columns)


def decoded(row: bytes, width: int) -> list[Any]:
    """Return the values by column id."""
    result: list[Any] = [None] * width
    for column, _, value in wire.values(row):
        result[column] = value
    return result
