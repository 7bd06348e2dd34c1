"""Rows in YT's wire format: kept as bytes, decoded only where a value is needed.

A row is `value count (8 bytes)` followed by its values; a value is an 8-byte header - column id
(2), type (1), flags (1), length (4) - and then 8 bytes of number, or bytes padded to a multiple of
8, or nothing for null. Everything is aligned to 8 bytes, so a row is also a sequence of 64-bit
words, and that is how the hot loops here walk it: a header is one integer, and a run of them one
`unpack`. The column ids mean nothing without the name table that travels beside the rows.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any

from yt import yson

from ..core.errors import RefusedError, YtError

NULL = 2
INT64 = 3
UINT64 = 4
DOUBLE = 5
BOOLEAN = 6
STRING = 16
ANY = 17
COMPOSITE = 18

AGGREGATE = 1  # the one value flag a client may set

TYPE_NAMES = {
    NULL: "null",
    INT64: "int64",
    UINT64: "uint64",
    DOUBLE: "double",
    BOOLEAN: "boolean",
    STRING: "string",
    ANY: "any",
    COMPOSITE: "composite",
}
FIXED = frozenset({INT64, UINT64, DOUBLE, BOOLEAN})

# Limits of the real server on a row of a dynamic table (client/table_client/public.h).
MAX_VALUES_PER_ROW = 1024
TOO_MANY_VALUES_IN_ROW = 321
MAX_ROWS_PER_ROWSET = 5 * 1024 * 1024
TOO_MANY_ROWS_IN_ROWSET = 319
MAX_VALUE_LENGTH = 16 << 20
"""Of a string, an any or a composite, in bytes."""

_WORD = Struct("<Q")
_HEADER = Struct("<HBBI")
DOUBLES = Struct("<d")
_NUMBER = {
    INT64: Struct("<q"),
    UINT64: Struct("<Q"),
    DOUBLE: DOUBLES,
    BOOLEAN: Struct("<Q"),
}
MISSING_ROW = 0xFFFF_FFFF_FFFF_FFFF

Value = int | float | bool | bytes | None


def malformed(what: str) -> YtError:
    return RefusedError(1, f"Malformed rowset: {what}")


def words_of(data: bytes) -> array[int]:
    """Return the 64-bit little-endian words of `data`, whose length must be a multiple of 8."""
    if len(data) & 7:
        raise malformed("its length is not a multiple of 8")
    # Makes numbers of those words only that are looked at, unlike `struct`.
    words = array("Q", data)
    if sys.byteorder == "big":
        words.byteswap()
    return words


def is_text(data: bytes) -> bool:
    """Return whether these bytes are UTF-8."""
    if data.isascii():
        return True
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def row_end(words: Sequence[int], position: int) -> int:
    """Return the end of the row that begins at `position` in the words of a rowset.

    Raises YtError.
    """
    try:
        count = words[position]
        position += 1
        if count == MISSING_ROW:
            return position
        if count > len(words):
            raise malformed(f"{count} values in a row")
        require_value_count(count)
        for _ in range(count):
            header = words[position]
            kind = header >> 16 & 0xFF
            if STRING <= kind <= COMPOSITE:
                position += 1 + ((header >> 32) + 7 >> 3)
            elif INT64 <= kind <= BOOLEAN:
                position += 2
            elif kind == NULL:
                position += 1
            else:
                raise malformed(f"unknown value type {kind}")
    except IndexError:
        position = len(words) + 1
    if position > len(words):
        raise malformed("it is cut short")
    return position


def row_count(words: Sequence[int]) -> int:
    """Return the number of rows that a rowset claims to have. Raises YtError."""
    if not words:
        raise malformed("the row count is missing")
    require_row_count(words[0])
    return words[0]


def require_row_count(count: int) -> None:
    """Raise YtError for more rows than a rowset may have (ValidateRowCount)."""
    if count > MAX_ROWS_PER_ROWSET:
        raise YtError(
            TOO_MANY_ROWS_IN_ROWSET,
            f"Too many rows in rowset: actual {count}, limit {MAX_ROWS_PER_ROWSET}",
        )


def require_end(words: Sequence[int], position: int) -> None:
    """Raise YtError when the words of a rowset do not end at `position`."""
    if position != len(words):
        raise malformed(f"{(len(words) - position) * 8} bytes too many")


def split(data: bytes) -> list[bytes | None]:
    """Return the rows of a whole rowset (row count first); None for a missing row."""
    words = words_of(data)
    rows: list[bytes | None] = []
    position = 1
    for _ in range(row_count(words)):
        end = row_end(words, position)
        rows.append(None if words[position] == MISSING_ROW else data[position << 3 : end << 3])
        position = end
    require_end(words, position)
    return rows


def join(rows: Sequence[bytes | None]) -> bytes:
    """Return the rowset of these rows, as `split` takes it."""
    missing = _WORD.pack(MISSING_ROW)
    return b"".join([_WORD.pack(len(rows)), *(missing if row is None else row for row in rows)])


def require_value_count(count: int) -> None:
    """Raise YtError for more values than a row may have (ValidateRowValueCount)."""
    if count > MAX_VALUES_PER_ROW:
        raise YtError(
            TOO_MANY_VALUES_IN_ROW,
            f"Too many values in row: actual {count}, limit {MAX_VALUES_PER_ROW}",
        )


def values(row: bytes, limit: int = MAX_VALUES_PER_ROW) -> list[tuple[int, int, Value]]:
    """Return values of a row as (column id, wire type, Python value): the first `limit` of them."""
    result: list[tuple[int, int, Value]] = []
    position = 8
    for _ in range(min(limit, _WORD.unpack_from(row)[0])):
        column, kind, _flags, length = _HEADER.unpack_from(row, position)
        position += 8
        if kind == NULL:
            result.append((column, kind, None))
        elif kind in FIXED:
            number = _NUMBER[kind].unpack_from(row, position)[0]
            result.append((column, kind, bool(number) if kind == BOOLEAN else number))
            position += 8
        else:
            result.append((column, kind, row[position : position + length]))
            position += length + 7 & ~7
    return result


def decoded(piece: bytes) -> Any:
    """Return the Python value of one encoded value that is not null; a boolean is a number."""
    kind = piece[2]
    if kind in FIXED:
        return _NUMBER[kind].unpack_from(piece, 8)[0]
    return piece[8 : 8 + int.from_bytes(piece[4:8], "little")]


def chunks(row: bytes) -> dict[int, bytes]:
    """Return the encoded values of a row, header and all, by column id."""
    words = words_of(row)
    result: dict[int, bytes] = {}
    position = 1
    for _ in range(words[0]):
        header = words[position]
        kind = header >> 16 & 0xFF
        size = 1 if kind == NULL else 2 if kind in FIXED else 1 + ((header >> 32) + 7 >> 3)
        result[header & 0xFFFF] = row[position << 3 : position + size << 3]
        position += size
    return result


def chunks_of_numbers(count: int) -> Callable[[bytes], dict[int, bytes]]:
    """Return `chunks` for rows of so many numbers, in the order of their ids; they may be null."""
    layout = Struct("<8x" + "16s" * count)

    def numbers(row: bytes) -> dict[int, bytes]:
        # Nulls make a row shorter.
        return dict(enumerate(layout.unpack(row))) if len(row) == layout.size else chunks(row)

    return numbers


def from_chunks(pieces: Sequence[bytes]) -> bytes:
    """Return a row of encoded values."""
    return _WORD.pack(len(pieces)) + b"".join(pieces)


def narrowing(wanted: Sequence[int]) -> Callable[[bytes], bytes]:
    """Return a function that makes a row of some columns out of a stored row.

    Their numbers are their places in ``wanted``.

    A stored row has all columns, in the order of the schema.
    """
    ids = {index: place.to_bytes(2, "little") for place, index in enumerate(wanted)}
    if [*ids] != sorted(wanted):
        return lambda row: _picked(row, wanted)
    head, after = _WORD.pack(len(wanted)), max(wanted, default=-1) + 1

    def narrow(row: bytes) -> bytes:
        position, pieces = 8, [head]
        for index in range(after):
            begin, kind = position, row[position + 2]
            if kind == NULL:
                position += 8
            elif kind in FIXED:
                position += 16
            else:
                position += 8 + (int.from_bytes(row[begin + 4 : begin + 8], "little") + 7 & ~7)
            if index in ids:
                pieces += ids[index], row[begin + 2 : position]
        return b"".join(pieces)

    return narrow


def _picked(row: bytes, wanted: Sequence[int]) -> bytes:
    pieces = chunks(row)
    return from_chunks([renumbered(pieces[index], place) for place, index in enumerate(wanted)])


def renumbered(chunk: bytes, column: int) -> bytes:
    """Return the encoded value under another column id."""
    return column.to_bytes(2, "little") + chunk[2:]


def encode_value(column: int, kind: int, value: Value, flags: int = 0) -> bytes:
    """Return one encoded value. Raises struct.error for a number outside the wire type."""
    if value is None:
        return _HEADER.pack(column, NULL, flags, 0)
    if isinstance(value, bytes):
        padding = b"\0" * (-len(value) & 7)
        return _HEADER.pack(column, kind, flags, len(value)) + value + padding
    return _HEADER.pack(column, kind, flags, 0) + _NUMBER[kind].pack(value)


def encode(items: Iterable[tuple[int, int, Value]]) -> bytes:
    """Return a row of (column id, wire type, Python value)."""
    return from_chunks([encode_value(column, kind, value) for column, kind, value in items])


def extended(row: bytes, tail: bytes, extra: int) -> bytes:
    """Return the row with `extra` more encoded values, `tail`, at its end."""
    return _WORD.pack(_WORD.unpack_from(row)[0] + extra) + row[8:] + tail


def guess(value: Any) -> tuple[int, Value]:
    """Return (wire type, value) of a YSON value by itself.

    Maps, lists and values with attributes are any.
    """
    if value is None or isinstance(value, yson.YsonEntity):
        return NULL, None
    if getattr(value, "attributes", None):
        return ANY, yson.dumps(value, yson_format="binary")
    if isinstance(value, bool | yson.YsonBoolean):
        return BOOLEAN, bool(value)
    if isinstance(value, yson.YsonUint64):
        return UINT64, int(value)
    if isinstance(value, int):
        return (INT64, int(value)) if value < 1 << 63 else (UINT64, int(value))
    if isinstance(value, float):
        return DOUBLE, float(value)
    if isinstance(value, bytes):
        return STRING, bytes(value)
    if isinstance(value, str):
        return STRING, value.encode()
    if isinstance(value, yson.yson_types.YsonStringProxy):
        return STRING, yson.get_bytes(value)
    return ANY, yson.dumps(value, yson_format="binary")


def to_python(kind: int, value: Value) -> Any:
    """Return a decoded value as YSON knows it.

    A uint64 stays unsigned, any and composite are parsed.
    """
    if value is None:
        return None
    if kind == UINT64:
        return yson.YsonUint64(value)
    if kind in (ANY, COMPOSITE):
        return yson.loads(value, encoding=None)
    return value


def to_dict(row: bytes, names: Sequence[str]) -> dict[str, Any]:
    """Return the row as a map; values as in `to_python`."""
    result: dict[str, Any] = {}
    position = 8
    for _ in range(_WORD.unpack_from(row)[0]):
        column, kind, _flags, length = _HEADER.unpack_from(row, position)
        position += 8
        value: Any = None
        if kind in FIXED:
            value = _NUMBER[kind].unpack_from(row, position)[0]
            position += 8
            if kind == BOOLEAN:
                value = value != 0
            elif kind == UINT64:
                value = yson.YsonUint64(value)
        elif kind != NULL:
            value = row[position : position + length]
            position += length + 7 & ~7
            if kind != STRING:
                value = yson.loads(value, encoding=None)
        result[names[column]] = value
    return result
