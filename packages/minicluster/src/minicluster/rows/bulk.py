"""Rows that are stored just as they came, several columns at one look: the usual case, in a hurry.

`RowReader.plain` lets the same rows pass and some more, one column at a time. What is unusual here
is left to it: a number that is null, or one that is negative or large for its narrow type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import wire

MOST_WORDS = wire.MAX_VALUE_LENGTH >> 3
"""No value of a shorter row is too long; a longer row is looked at value by value."""

_WORD = (1 << 64) - 1
_LOW = (1 << 32) - 1


class Expected(NamedTuple):
    """A column of the schema as a check sees it: the low half of a value's header."""

    plain: int
    null: int
    fixed: bool
    bounds: tuple[int, int] | None
    utf8: bool


class Run(NamedTuple):
    """Columns that one look takes in, as one number: the last one may have a length."""

    size: int
    """Bytes of these columns, or up to the last one's length and with it."""
    mask: int
    """The bits that must be those of `form`: all headers, and what no valid number has."""
    form: int
    or_null: int
    """The form if the last column, which has a length, is null; it takes no more bytes then."""
    length_at: int
    """The bit at which the length begins; 0 where no column has one."""
    utf8: bool


def of(columns: Sequence[Expected]) -> list[Run]:
    """Return the runs of a row's columns; the first one begins with the number of values."""
    found = []
    size, mask, form = 8, _WORD, len(columns)
    for column in columns:
        at = size << 3
        if column.fixed:
            mask |= (_LOW | _invalid_bits(column.bounds) << 64) << at
            form |= column.plain << at
            size += 16
            continue
        mask |= _LOW << at
        null = form | column.null << at if column.null >= 0 else -1
        form |= column.plain << at
        found.append(Run(size + 8, mask, form, null, at + 32, column.utf8))
        size, mask, form = 0, 0, 0
    if size and columns:
        found.append(Run(size, mask, form, -1, 0, False))
    return found


def _invalid_bits(bounds: tuple[int, int] | None) -> int:
    """Return bits that are all 0 in valid numbers only: some large ones have them, too."""
    return 0 if bounds is None else _WORD ^ (1 << (bounds[1] + 1).bit_length() - 1) - 1


def rows(runs: Sequence[Run], data: bytes, start: int, most: int) -> tuple[list[bytes], int]:
    """Return the rows from a word of a rowset on, and the word behind them.

    They end at the first row that may not stay as it came, or that is cut short.
    """
    found: list[bytes] = []
    add, end, number = found.append, start << 3, int.from_bytes
    longest, limit = MOST_WORDS << 3, len(data)
    for _ in range(most):
        position = end
        for size, mask, form, or_null, length_at, utf8 in runs:
            stop = position + size
            bits = number(data[position:stop], "little")
            position = stop
            if bits & mask != form:
                if bits & mask != or_null:
                    return found, end >> 3
                continue
            if length_at:
                stop += bits >> length_at
                if utf8:
                    text = data[position:stop]
                    if not (text.isascii() or wire.is_text(text)):
                        return found, end >> 3
                position = stop + 7 & ~7
        if position > limit or position - end > longest:
            return found, end >> 3
        add(data[end:position])
        end = position
    return found, end >> 3
