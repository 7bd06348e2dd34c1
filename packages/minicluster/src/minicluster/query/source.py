"""The rows that a query reads: which rows, judging by the key, and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ..core.errors import YtError
from ..rows import wire
from ..rows.from_wire import ROW_INDEX, TABLET_INDEX, Key
from ..rows.rowset import RowsetColumn
from ..tables.commands import Tables
from ..tables.ordered import numbered
from ..tables.table import Table, require_readable
from .ast import Binary, Expression, In, Literal, Name, Row
from .evaluation import Scope, compile
from .statistics import Statistics
from .typed import Typed

_AFTER = 255
"""Greater than any wire type, so that `key + (_AFTER,)` comes after every longer key."""


@dataclass
class Source:
    """A table as a query sees it; column ids of its rows are positions in `columns`.

    Under an alias a column has no other name than `alias.column` (query/base/query_preparer.cpp).
    """

    path: str
    alias: str | None
    table: Table
    timestamp: int | None
    columns: list[RowsetColumn]
    statistics: Statistics | None = None

    def name(self, column: str) -> str:
        """Return the name that a column of the table has in the query."""
        return f"{self.alias}.{column}" if self.alias else column

    @property
    def named_columns(self) -> list[RowsetColumn]:
        return [replace(column, name=self.name(column.name)) for column in self.columns]

    def rows(self, where: Expression | None) -> Iterator[bytes]:
        """Yield the rows that may satisfy the condition, sorted ones by key.

        Raises YtError TABLET_NOT_MOUNTED for a tablet that has to be looked into.
        """
        found = self._sorted(where) if self.table.sorted else self._ordered(where)
        return found if self.statistics is None else self.statistics.counted(found)

    def _sorted(self, where: Expression | None) -> Iterator[bytes]:
        equal = dict(_equalities(where))
        prefixes: list[Key] = [()]
        low, high = _EVERYTHING
        for column in self.table.schema.columns[: self.table.schema.key_count]:
            literals = equal.get(self.name(column.name))
            if literals is None:
                low, high = _bounds(where, self.name(column.name), column.wire_type)
                break
            prefixes = [
                (*prefix, *_key_part(column.wire_type, literal))
                for prefix in prefixes
                for literal in literals
            ]
        ranges = [((*prefix, *low), (*prefix, *high)) for prefix in sorted({*prefixes})]
        for begin, end in ranges:
            for index in range(max(0, self.table.tablet_of(begin)), self.table.tablet_of(end) + 1):
                require_readable(self.table.tablets[index], self.path)
        for begin, end in ranges:
            for _, row in self.table.data.scan(self.timestamp, begin, end):
                yield row

    def _ordered(self, where: Expression | None) -> Iterator[bytes]:
        width = len(self.table.schema.columns)
        names = {self.name(TABLET_INDEX): Typed.at(0, wire.INT64)}
        may_hold = _possible(where, Scope(names, {}, {}))
        wanted = [pair for pair in enumerate(self.table.tablets) if may_hold(pair[0])]
        for _, tablet in wanted:
            require_readable(tablet, self.path)
        named = _named(where, self.name(TABLET_INDEX), self.name(ROW_INDEX))
        for index, tablet in wanted:
            data = tablet.data
            end = data.total if self.timestamp is None else data.end_at(self.timestamp)
            rows = (
                [(data.trimmed, max(0, end - data.trimmed))]
                if named is None
                else [(row, 1) for row in named.get(index, ()) if data.trimmed <= row < end]
            )
            for start, count in rows:
                first, found = data.spans(start, count)
                yield from numbered(found, width, index, first)


_EVERYTHING: tuple[Key, Key] = ((), (_AFTER,))


def _bounds(where: Expression | None, name: str, kind: int) -> tuple[Key, Key]:
    """Return the parts of a key between which a column has to be.

    The server reads no rows that key columns exclude, either (query/engine_api/range_inferrer.h).
    """
    low, high = _EVERYTHING
    for sign, literal in _comparisons(where, name):
        if literal.kind != kind:
            continue
        value = _key_part(kind, literal)
        bound = (*value, _AFTER) if sign in (">", "<=") else value
        if sign in (">", ">="):
            low = max(low, bound)
        else:
            high = min(high, bound)
    return low, high


def _comparisons(where: Expression | None, name: str) -> Iterator[tuple[str, Literal]]:
    """Yield the signs and constants that a column is compared with, if all of that must hold."""
    match where:
        case Binary("and", left, right):
            yield from _comparisons(left, name)
            yield from _comparisons(right, name)
        case Binary("<" | "<=" | ">" | ">=" as sign, Name(found), Literal() as literal):
            if found == name:
                yield sign, literal


def _key_part(kind: int, literal: Literal) -> Key:
    return (wire.NULL, 0) if literal.value is None else (kind, literal.value)


def _equalities(where: Expression | None) -> Iterator[tuple[str, tuple[Literal, ...]]]:
    """Yield the columns that must be one of some constants, of conditions that must all hold."""
    match where:
        case Binary("and", left, right):
            yield from _equalities(left)
            yield from _equalities(right)
        case Binary("=", Name(name), Literal() as literal):
            yield name, (literal,)
        case Binary("=", Literal() as literal, Name(name)):
            yield name, (literal,)
        case In(Name(name), options):
            literals = tuple(option for option in options if isinstance(option, Literal))
            if len(literals) == len(options):
                yield name, literals


def _named(where: Expression | None, tablet: str, row: str) -> dict[int, list[int]] | None:
    """Return the rows by tablet, if a condition names all that may satisfy it.

    A real cluster reads no others, either: both are key columns of an ordered table.
    """
    named: dict[int, set[int]] = {}
    equal = dict(_equalities(where))
    pairs = next(_pairs(where, (Name(tablet), Name(row))), None)
    if tablet in equal and row in equal:
        pairs = [Row(pair) for pair in product(equal[tablet], equal[row])]
    for pair in pairs or ():
        match pair:
            case Row((Literal(int(index)), Literal(int(number)))):
                named.setdefault(index, set()).add(number)
            case _:
                return None
    return None if pairs is None else {index: sorted(rows) for index, rows in named.items()}


def _pairs(where: Expression | None, names: tuple[Name, Name]) -> Iterator[Sequence[Expression]]:
    """Yield the pairs that two columns must be one of, of conditions that must all hold."""
    match where:
        case Binary("and", left, right):
            yield from _pairs(left, names)
            yield from _pairs(right, names)
        case In(Row(items), options) if items == names:
            yield options


# What holds of the first items of two rows when the sign holds of the rows.
_WEAKER = {"=": "=", "<": "<=", "<=": "<=", ">": ">=", ">=": ">="}


def _possible(where: Expression | None, scope: Scope) -> Callable[[int], bool]:
    """Return whether rows of a tablet may satisfy the condition, by the tablet's index."""
    match where:
        case Binary("and" | "or" as word, left, right):
            first, second = _possible(left, scope), _possible(right, scope)
            if word == "and":
                return lambda index: first(index) and second(index)
            return lambda index: first(index) or second(index)
        case Binary(sign, Row(left), Row(right)) if sign in _WEAKER:
            return _possible(Binary(_WEAKER[sign], left[0], right[0]), scope)
        case None:
            return lambda index: True
    try:
        condition = compile(where, scope).evaluate
    except YtError:  # it depends on other columns
        return lambda index: True
    return lambda index: bool(condition((index,)))


def open_source(
    tables: Tables,
    path: str,
    alias: str | None,
    timestamp: int | None,
    statistics: Statistics | None,
) -> Source:
    """Return the table to read, its rows to be counted in `statistics`. Raises YtError."""
    node, table = tables.dynamic(path)
    columns = table.schema.rowset_columns()
    if not table.sorted:
        columns += [
            RowsetColumn(TABLET_INDEX, wire.INT64),
            RowsetColumn(ROW_INDEX, wire.INT64),
        ]
    if table.sorted:
        tables.require_retained(node, timestamp)
    return Source(node.path, alias, table, timestamp, columns, statistics)


def decoded(row: bytes, width: int) -> list[Any]:
    """Return the values by column id."""
    result: list[Any] = [None] * width
    for column, _, value in wire.values(row):
        result[column] = value
    return result
