"""Rows that are stored just as they came, a row at one look: the usual case, in a hurry.

A regular expression says what a usual row is, and `re` walks over a rowset faster than a loop does.
`RowReader` takes the other rows one column at a time: those with a long string, or with a number
of a narrow type that is negative or large. That is slowest for rows that name their tablet.

A rowset of usual rows alone, which nearly all of them are, is taken apart by one call of `findall`.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from struct import Struct
from typing import NamedTuple

from . import wire

MOST_BYTES = 512
"""Of a usual string, its padding included: the expression has a branch for each eight bytes."""
ROWS_BEFORE = 500
"""So many rows come before an expression is compiled: that takes milliseconds."""
_AROUND = 8 + 16
"""Bytes of a row that names its tablet around what is stored: the number of values, the tablet."""

_CODES = {wire.INT64: "q", wire.UINT64: "Q"}
"""Of an array with such numbers."""


class Expected(NamedTuple):
    """A column of the schema as a check sees it: the low half of a value's header."""

    plain: int
    null: int
    """-1 where the column must not be null."""
    fixed: bool
    bounds: tuple[int, int] | None
    utf8: bool


ByTablet = dict[int | None, list[bytes]]
"""Stored rows by the index of their tablet; None: they name none."""


class UsualRows:
    """Finds usual rows: those whose values are these columns, and no others.

    With `named`, the last column is the index of the row's tablet.
    """

    def __init__(self, columns: Sequence[Expected], *, named: bool = False) -> None:
        self._columns = columns
        self._named = named
        self._pattern: re.Pattern[bytes] | None = None
        self._parts: re.Pattern[bytes] | None = None
        self._seen = 0

    def __bool__(self) -> bool:
        return bool(self._columns)

    def rows(self, data: bytes, start: int, most: int) -> tuple[list[bytes], int]:
        """Return the rows from a word of a rowset on, and the word behind them.

        They end at the first row that is not usual, or that is cut short.
        """
        if self._pattern is None:
            self._seen += most
            if not self._columns or self._seen <= ROWS_BEFORE:
                return [], start
            self._pattern = _compiled(_row(self._columns))
        found: list[bytes] = []
        add, match, end = found.append, self._pattern.match, start << 3
        for _ in range(most):
            row = match(data, end)
            if row is None or (row.lastindex and not all(map(_is_text, row.groups()))):
                break
            add(row[0])
            end = row.end()
        return found, end >> 3

    def whole(self, data: bytes, count: int) -> ByTablet | None:
        """Return the stored rows of a rowset that has `count` of them, all usual; else None."""
        if self._parts is None:
            if not self._columns or self._seen + count <= ROWS_BEFORE:
                return None
            self._parts = _compiled(_parts(self._columns, self._named))
        if not data.startswith(count.to_bytes(8, "little")):
            return None
        found = self._parts.findall(data, 8)
        if len(found) != count or not found:
            return None
        # Of an expression with one group it returns strings, not tuples.
        groups = [*zip(*found, strict=True)] if self._parts.groups > 1 else [found]
        rows, texts = groups[0], groups[1:-1] if self._named else groups[1:]
        # `findall` skips what is not usual: the sizes tell.
        size = sum(map(len, rows)) + (_AROUND * count if self._named else 0)
        if size != len(data) - 8 or not all(map(_is_text, chain(*map(_present, texts)))):
            return None
        return self._by_tablet(rows, groups[-1]) if self._named else {None: [*rows]}

    def _by_tablet(self, rows: Sequence[bytes], indexes: Sequence[bytes]) -> ByTablet:
        found: dict[bytes, list[bytes]] = defaultdict(list)
        count = (len(self._columns) - 1).to_bytes(8, "little")
        for row, index in zip(rows, indexes, strict=True):
            found[index].append(count + row)
        return {int.from_bytes(index, "little"): rows for index, rows in found.items()}


class Narrowing:
    """Makes rows of some columns out of stored rows; wire.narrowing takes those not usual."""

    def __init__(self, columns: Sequence[Expected], wanted: Sequence[int]) -> None:
        self._narrow = wire.narrowing(wanted)
        self._head = len(wanted).to_bytes(8, "little")
        self._ids = [place.to_bytes(2, "little") for place, _ in enumerate(wanted)]
        # An expression finds values in the order of the schema.
        self._columns = columns if wanted and [*wanted] == sorted({*wanted}) else ()
        self._wanted = wanted
        self._pattern: re.Pattern[bytes] | None = None
        self._seen = 0

    def of(self, rows: Sequence[bytes]) -> list[bytes]:
        """Return each of the rows with the wanted columns alone."""
        self._seen += len(rows)
        if self._columns and self._seen > ROWS_BEFORE:
            self._pattern = self._pattern or _compiled(_picking(self._columns, self._wanted))
            found = self._pattern.findall(b"".join(rows))
            # `findall` skips what is not usual: rows and their sizes tell.
            if len(found) == len(rows) and found:
                whole, *pieces = zip(*found, strict=True)
                if [*map(len, whole)] == [*map(len, rows)]:
                    return [*map(b"".join, zip(*self._values(pieces), strict=False))]
        return [*map(self._narrow, rows)]

    def _values(self, pieces: Sequence[Sequence[bytes]]) -> Iterator[Iterator[bytes]]:
        yield repeat(self._head)
        for number, values in zip(self._ids, pieces, strict=True):
            yield repeat(number)
            yield iter(values)


def integer_keys(data: bytes, columns: Sequence[Expected]) -> Iterator[tuple[int, ...]] | None:
    """Return type and value of each column, by row, of a rowset of integers that are not null.

    None if it has other rows.
    """
    kinds = [column.plain >> 16 for column in columns]
    if any(column.bounds for column in columns) or not _CODES.keys() >= {*kinds}:
        return None
    words = wire.words_of(data)
    if not _are_numbers(words, [column.plain for column in columns]):
        return None
    parts: list[Iterator[int]] = []
    for place, kind in enumerate(kinds):
        numbers = words[3 + 2 * place :: 1 + 2 * len(columns)]
        parts += repeat(kind), iter(array(_CODES[kind], numbers.tobytes()))
    return zip(*parts, strict=False)


def number_pieces(data: bytes, headers: Sequence[int]) -> Iterator[tuple[bytes, ...]] | None:
    """Return the encoded values, by row, of a rowset whose rows are numbers with these headers.

    None if it has other rows.
    """
    if not _are_numbers(wire.words_of(data), headers):
        return None
    return Struct("<8x" + "16s" * len(headers)).iter_unpack(memoryview(data)[8:])


def _are_numbers(words: array[int], headers: Sequence[int]) -> bool:
    """Return whether all rows of a rowset are numbers with these headers, and not null."""
    count, width = wire.row_count(words), 1 + 2 * len(headers)
    expected = (len(headers), *(word for header in headers for word in (header, None)))
    return len(words) == 1 + count * width and all(
        word is None or words[1 + place :: width] == array("Q", [word]) * count
        for place, word in enumerate(expected)
    )


def _compiled(pieces: Iterator[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"".join(pieces), re.DOTALL)


def _present(texts: Sequence[bytes]) -> Iterator[bytes]:
    """Return the texts that a group of an expression has caught, of all rows."""
    return filter(None, texts)


def _is_text(string: bytes | None) -> bool:
    """Return whether a length and the bytes behind it are UTF-8; None: they are ASCII."""
    return string is None or wire.is_text(string[4 : 4 + int.from_bytes(string[:4], "little")])


def _parts(columns: Sequence[Expected], named: bool) -> Iterator[bytes]:
    """Yield a row whose groups are what is stored of it, its texts, and the tablet it names."""
    if not named:
        yield from (b"(", *_row(columns), b")")
        return
    *stored, tablet = columns
    yield from (_literally(len(columns), 8), b"(", *_values(stored), b")")
    yield from (_literally(tablet.plain, 4), b"....(", _number(tablet.bounds), b")")


def _picking(columns: Sequence[Expected], wanted: Sequence[int]) -> Iterator[bytes]:
    """Yield a stored row whose groups are itself and each wanted value, without its column id."""
    yield from (b"(", _literally(len(columns), 8))
    for index, column in enumerate(columns):
        # What is stored has been judged already.
        value = _typed(column._replace(utf8=False, bounds=None))
        yield from (_literally(index, 2), b"(" + value + b")" if index in wanted else value)
    yield b")"


def _row(columns: Sequence[Expected]) -> Iterator[bytes]:
    yield _literally(len(columns), 8)
    yield from _values(columns)


def _values(columns: Sequence[Expected]) -> Iterator[bytes]:
    for column in columns:
        yield from (_literally(column.plain & 0xFFFF, 2), _typed(column))


def _typed(column: Expected) -> bytes:
    """Return a value without its column id."""
    value = b"...." + _number(column.bounds) if column.fixed else _string(column.utf8)
    value = _literally(column.plain >> 16, 2) + value
    if column.null < 0:
        return value
    return _one_of([value, _literally(column.null >> 16, 2) + b"...."])


def _literally(number: int, size: int) -> bytes:
    return re.escape(number.to_bytes(size, "little"))


def _one_of(branches: Sequence[bytes]) -> bytes:
    """Return an expression that keeps the first branch that matches: no other can match, too."""
    return b"(?>" + b"|".join(branches) + b")"


def _number(bounds: tuple[int, int] | None) -> bytes:
    """Return the eight bytes of a number from 0 to a power of two, within the bounds."""
    bits = 64 if bounds is None else (bounds[1] + 1).bit_length() - 1
    whole, rest = divmod(bits, 8)
    highest = rb"[\x00-\x%02x]" % ((1 << rest) - 1) if rest else b""
    return b"." * whole + highest + rb"\x00" * (8 - whole - (rest > 0))


def _string(utf8: bool) -> bytes:
    """Return the length of a string and the bytes with their padding.

    Where they have to be UTF-8 and are not ASCII, they are a group: an expression cannot judge it.
    """
    any_bytes = _one_of([*_sizes(b".")])
    if not utf8:
        return any_bytes
    return _one_of([*_sizes(rb"[\x00-\x7f]"), b"(" + any_bytes + b")"])


def _sizes(byte: bytes) -> Iterator[bytes]:
    """Yield a branch for each size of the padded bytes, after the lengths that have it."""
    yield _literally(0, 4)
    for size in range(8, MOST_BYTES, 8):
        high = size - 7 >> 8
        highest = min(size, high << 8 | 255)
        padded = rb"\x00\x00" + byte + b"{%d}+" % size
        yield rb"[\x%02x-\x%02x]\x%02x" % (size - 7 & 255, highest & 255, high) + padded
        if size > highest:
            yield rb"\x%02x\x%02x" % (size & 255, size >> 8) + padded
