"""Two versions of an output compared: rows of only one, and rows whose columns differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ytstream.schema.string_values import shown
from ytstream.text_table import counted, table

from ..demo.demo_tables import compare
from ..demo.job_sample import Counted, untyped

OutputRow = Mapping[str, Any]
SHOWN, _TRIED = 5, 1_000
"""Rows of each kind that are shown, and those of one side that are tried as partners of one."""
_WIDTH = 40
"""A text in a cell is cut to this many characters, and a list after the item that reaches it."""
_NONE = "(no such column)"
"""The value of a column that one side does not have."""


@dataclass(frozen=True)
class OutputRows:
    """The rows of an output after a run."""

    rows: Sequence[OutputRow]
    key: Sequence[str] = ()
    """The table's key columns; empty for an ordered or a static one."""


@dataclass(frozen=True)
class Difference:
    """Where two versions of an output differ."""

    before: int
    """Rows of either version."""
    after: int
    only_before: Sequence[OutputRow] = ()
    only_after: Sequence[OutputRow] = ()
    changed: Sequence[tuple[OutputRow, OutputRow]] = ()
    """The same row with other values: before, and after."""

    @property
    def is_equal(self) -> bool:
        """Whether both have the same rows, as often each."""
        return not (self.only_before or self.only_after or self.changed)


def difference(before: OutputRows, after: OutputRows, without: Collection[str] = ()) -> Difference:
    """Compare two versions; columns in ``without`` do not count.

    Floats that differ in their last digits are equal. Rows of one key are the same row; without a
    key, rows that agree in half of their columns are.
    """
    columns = sorted({name for rows in (before.rows, after.rows) for row in rows for name in row})
    columns = [name for name in columns if name not in without]
    found = compare(_counted(before.rows, columns), _counted(after.rows, columns))
    old, new = _rows(columns, found.missing), _rows(columns, found.unexpected)
    key = [name for name in before.key if name not in without]
    key = key if list(before.key) == list(after.key) else []
    changed, old, new = _paired(old, new, columns, key)
    return Difference(len(before.rows), len(after.rows), old, new, changed)


def lines(name: str, found: Difference, key: Sequence[str] = ()) -> Iterator[str]:
    """Yield the counts of an output, and the first rows that differ."""
    counts = f"{name}: {counted(found.before, 'row')} before, {found.after} after"
    if found.is_equal:
        yield f"{counts}: equal"
        return
    yield (
        f"{counts}: {len(found.changed)} changed, {len(found.only_before)} only before, "
        f"{len(found.only_after)} only after"
    )
    for old, new in found.changed[:SHOWN]:
        differing = [column for column in old if old[column] != new[column]]
        named = [column for column in (key or old) if column not in differing][:3]
        yield "  " + (", ".join(f"{column}={_cell(old[column])}" for column in named) or "a row")
        cells = [(column, _cell(old[column]), _cell(new[column])) for column in differing]
        yield from (
            "    " + line for line in table(("column", "before", "after"), cells).split("\n")
        )
    for side, rows in (("only before", found.only_before), ("only after", found.only_after)):
        for row in rows[:SHOWN]:
            yield f"  {side}: " + ", ".join(f"{c}={_cell(value)}" for c, value in row.items())


def _counted(rows: Sequence[OutputRow], columns: Sequence[str]) -> Counted:
    return Counted(tuple(untyped(row.get(name, _NONE)) for name in columns) for row in rows)


def _rows(columns: Sequence[str], values: Counted) -> list[OutputRow]:
    return [dict(zip(columns, row, strict=True)) for row in values.elements()]


def _paired(
    old: list[OutputRow], new: list[OutputRow], columns: Sequence[str], key: Sequence[str]
) -> tuple[list[tuple[OutputRow, OutputRow]], list[OutputRow], list[OutputRow]]:
    """Return the pairs, and the rows of either side that are left."""
    pairs: list[tuple[OutputRow, OutputRow]] = []
    left: list[OutputRow] = []
    waiting: dict[Any, list[OutputRow]] = {}
    for row in new:
        waiting.setdefault(tuple(row[name] for name in key), []).append(row)
    for row in old:
        there = waiting.get(tuple(row[name] for name in key), [])
        best = max(there[:_TRIED], key=lambda other: _alike(row, other, columns), default=None)
        if best is None or (not key and 2 * _alike(row, best, columns) < len(columns)):
            left.append(row)
            continue
        there.remove(best)
        pairs.append((row, best))
    return pairs, left, [row for rows in waiting.values() for row in rows]


def _alike(row: OutputRow, other: OutputRow, columns: Sequence[str]) -> int:
    return sum(row[name] == other[name] for name in columns)


def _cell(value: Any) -> str:
    """Return a value for a cell. Bytes are not cut, since their length is behind them."""
    text = shown(value)
    if len(text) <= _WIDTH or isinstance(value, bytes):
        return text
    if not isinstance(value, tuple):
        return f"{text[: _WIDTH - 3]}..."
    items: list[str] = []
    for item in value:
        items.append(_cell(item))
        if sum(map(len, items)) > _WIDTH:
            break
    rest = ", ..." if len(items) < len(value) else "," if len(value) == 1 else ""
    return f"({', '.join(items)}{rest})"
