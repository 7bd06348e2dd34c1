"""Rows that are stored just as they came, several columns at one look: the usual case, in a hurry.

`RowReader.plain` lets the same rows pass and some more, one column at a time. What is unusual here,
a number that is null or a negative one of a narrow type among them, is left to it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from struct import Struct
from typing import NamedTuple

from . import wire

MOST_WORDS = wire.MAX_VALUE_LENGTH >> 3
"""No value of a shorter row is too long; a longer row is looked at value by value."""


class Expected(NamedTuple):
    """A column of the schema as a check sees it: the low half of a value's header."""

    plain: int
    null: int
    fixed: bool
    bounds: tuple[int, int] | None
    utf8: bool


class Run(NamedTuple):
    """Columns that one look takes in: the last one has a length or bounds, the others neither."""

    read: Callable[[bytes, int], tuple[int, ...]]
    """Returns the low half of each header, then the length or the value of the last column."""
    size: int
    heads: tuple[int, ...]
    or_null: tuple[int, ...]
    """The heads if the last column, which has a length, is null; it takes no more bytes then."""
    bounds: tuple[int, int] | None
    """Of that value; None for a length."""
    utf8: bool


def of(columns: Sequence[Expected]) -> list[Run]:
    """Return the runs of a row's columns; the first one begins with the number of values."""
    found = []
    layout = "<Q"
    heads: tuple[int, ...] = (len(columns),)
    for column in columns:
        bounds = column.bounds if column.fixed else None
        if not column.fixed:
            layout, heads = layout + "II", (*heads, column.plain)
        elif bounds:
            layout, heads = layout + "I4xQ", (*heads, column.plain)
        elif column is columns[-1]:
            # There is nothing behind it that could be the last: its own header is.
            layout, bounds = layout + "I12x", (column.plain, column.plain)
        else:
            layout, heads = layout + "I12x", (*heads, column.plain)
            continue
        shape, or_null = Struct(layout), heads if column.fixed else (*heads[:-1], column.null)
        found.append(Run(shape.unpack_from, shape.size, heads, or_null, bounds, column.utf8))
        layout, heads = "<", ()
    return found


def rows(runs: Sequence[Run], data: bytes, start: int, most: int) -> tuple[list[bytes], int]:
    """Return the rows from a word of a rowset on, and the word behind them.

    They end at the first row that may not stay as it came, or that is cut short.
    """
    found: list[bytes] = []
    add, end = found.append, start << 3
    longest, limit = MOST_WORDS << 3, len(data)
    try:
        for _ in range(most):
            position = end
            for read, size, heads, or_null, bounds, utf8 in runs:
                values = read(data, position)
                position += size
                if values[:-1] != heads:
                    if values[:-1] != or_null:
                        return found, end >> 3
                    continue
                if bounds is None:
                    stop = position + values[-1]
                    if utf8:
                        text = data[position:stop]
                        if not (text.isascii() or wire.is_text(text)):
                            return found, end >> 3
                    position = stop + 7 & ~7
                elif not bounds[0] <= values[-1] <= bounds[1]:
                    return found, end >> 3
            if position > limit or position - end > longest:
                return found, end >> 3
            add(data[end:position])
            end = position
    except struct.error:
        return found, end >> 3
    return found, end >> 3
