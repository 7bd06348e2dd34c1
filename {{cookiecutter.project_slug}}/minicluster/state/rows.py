"""What a client wrote becomes what a table stores.

A written row numbers its values by the client's name table; a stored row numbers them by the
table's schema, holds every column (explicit nulls included, since SPYT refuses a rowset that lacks
one) and is valid. Rows that already look like that - the usual case - are stored as they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Any

from yt import yson

from ..errors import YtError, not_supported
from . import wire
from .schema import SYSTEM_COLUMNS, Column, TableSchema, check_value, violation

WRITE = 0
DELETE = 1
UPDATE = 3

TABLET_INDEX = "$tablet_index"
ROW_INDEX = "$row_index"

# Column ids of a name table that have no place in the schema.
_TABLET = -1
_SYSTEM = -2

Key = tuple[Any, ...]
"""A key that Python orders as YT does: (type, value) flattened, null first, then by type."""


@lru_cache(maxsize=4096)
def _words(length: int) -> Struct:
    return Struct(f"<{length >> 3}Q")


@dataclass(frozen=True, slots=True)
class _Expected:
    """A column of the schema as the fast check sees it: the low half of a value's header."""

    plain: int
    null: int
    fixed: bool
    bounds: tuple[int, int] | None
    utf8: bool


class RowReader:
    """Turns rows written under one name table into stored rows of one schema."""

    def __init__(self, schema: TableSchema, names: Sequence[str], path: str) -> None:
        self.schema = schema
        self.names = list(names)
        positions = {column.name: index for index, column in enumerate(schema.columns)}
        self._stored = [
            index
            for index, column in enumerate(schema.columns)
            if column.name not in SYSTEM_COLUMNS
        ]
        self._mapping: list[int] = []
        for name in names:
            if name in SYSTEM_COLUMNS and name in positions:
                self._mapping.append(_SYSTEM)
            elif name in positions:
                self._mapping.append(positions[name])
            elif name == TABLET_INDEX and not schema.sorted:
                self._mapping.append(_TABLET)
            else:
                # The server refuses a row, not a name table; a wrong name that no row uses is
                # harmless there, and refused here only when a row does use it.
                self._mapping.append(-3)
        for name in schema.key_columns:
            if name not in self.names:
                raise YtError(1, f'Missing key column "{name}" in name table', {"path": path})
        self._fast = self._expectations() if self._identity() else None

    def _identity(self) -> bool:
        return self._mapping[: len(self._stored)] == self._stored == list(range(len(self._stored)))

    def _expectations(self) -> list[_Expected] | None:
        result = []
        for index in self._stored:
            column = self.schema.columns[index]
            if column.wire_type in (wire.COMPOSITE, wire.NULL) or column.type == "uuid":
                return None
            result.append(
                _Expected(
                    index | column.wire_type << 16,
                    -1 if column.required else index | wire.NULL << 16,
                    column.wire_type in wire.FIXED,
                    column.scalar.bounds,
                    column.scalar.utf8,
                )
            )
        return result

    def _stored_form(self, row: bytes) -> bytes | None:
        """The row if it is valid, complete and numbered as the schema is; else None.

        Nulls for the server's own columns at its end are cut off: SPYT writes them.
        """
        expected = self._fast
        if expected is None:
            return None
        words = _words(len(row)).unpack(row)
        tail = words[0] - len(expected)
        if tail and (tail < 0 or self._mapping[len(expected) :][:tail] != [_SYSTEM] * tail):
            return None
        position = 1
        for column in expected:
            header = words[position]
            low = header & 0xFFFFFFFF
            if low == column.plain:
                if column.fixed:
                    if column.bounds:
                        value = words[position + 1]
                        if value >> 63 or not column.bounds[0] <= value <= column.bounds[1]:
                            return None  # negative or wrong: the long way tells them apart
                    position += 2
                else:
                    length = header >> 32
                    if column.utf8:
                        start = position + 1 << 3
                        try:
                            str(row[start : start + length], "utf-8")
                        except UnicodeDecodeError:
                            return None
                    position += 1 + (length + 7 >> 3)
            elif low == column.null:
                position += 1
            else:
                return None
        if not tail:
            return row
        nulls = [len(expected) + place | wire.NULL << 16 for place in range(tail)]
        if [header & 0xFFFFFFFF for header in words[position:]] != nulls:
            return None
        return len(expected).to_bytes(8, "little") + row[8 : position << 3]

    def written(self, row: bytes) -> tuple[int | None, bytes]:
        """(tablet index if the row names one, stored row) of a row written whole."""
        stored = self._stored_form(row)
        if stored is not None:
            return None, stored
        tablet, pieces = self._pieces(row)
        for index in self._stored:
            if index not in pieces:
                column = self.schema.columns[index]
                if column.required:
                    raise violation(f'Missing required column "{column.name}" in table schema')
                pieces[index] = wire.encode_value(index, wire.NULL, None)
        return tablet, wire.from_chunks([pieces[index] for index in self._stored])

    def updated(self, row: bytes) -> dict[int, bytes]:
        """The columns that a row of an update or a key holds, by column id of the schema."""
        return self._pieces(row)[1]

    def key_only(self, row: bytes) -> bytes:
        """The stored form of a key; raises when the row holds more or less than the key columns."""
        pieces = self._pieces(row)[1]
        count = self.schema.key_count
        if len(pieces) != count:
            raise YtError(
                1,
                f"Invalid number of key columns: expected {count}, actual {len(pieces)}",
            )
        return wire.from_chunks([pieces[index] for index in range(count)])

    def _pieces(self, row: bytes) -> tuple[int | None, dict[int, bytes]]:
        tablet: int | None = None
        pieces: dict[int, bytes] = {}
        keys = self.schema.key_count
        chunks = wire.chunks(row)
        given = wire.values(row)
        if len(chunks) != len(given):
            raise _duplicate(self.names, [client_id for client_id, _, _ in given])
        for client_id, kind, value in given:
            chunk = chunks[client_id]
            if client_id >= len(self._mapping):
                raise YtError(
                    1,
                    "Invalid column id during remapping: expected in range "
                    f"[0, {len(self._mapping)}), got {client_id}",
                )
            index = self._mapping[client_id]
            if index == _TABLET:
                if kind not in (wire.NULL, wire.INT64):
                    raise violation('Invalid type of "$tablet_index": expected "int64"')
                tablet = value if isinstance(value, int) else None
            elif index == _SYSTEM:
                # model: SPYT writes a null for every schema column its frame lacks, these included
                if kind != wire.NULL:
                    raise YtError(1, f'Cannot write to column "{self.names[client_id]}"')
            elif index < 0:
                raise YtError(1, f'Unexpected column "{self.names[client_id]}"')
            elif index in pieces:
                raise _duplicate([column.name for column in self.schema.columns], [index] * 2)
            else:
                column = self.schema.columns[index]
                if chunk[3] & wire.AGGREGATE:
                    raise not_supported("Aggregate values")
                check_value(column, kind, value)
                pieces[index] = wire.renumbered(chunk, index)
        for index in range(keys):
            if index not in pieces:
                name = self.schema.columns[index].name
                raise YtError(1, f'Missing key column "{name}"')
        return tablet, pieces


def _duplicate(names: Sequence[str], ids: Sequence[int]) -> YtError:
    name = next((names[i] for i in ids if ids.count(i) > 1 and i < len(names)), "")
    return YtError(1, f'Duplicate column "{name}" in table schema')


def key_of(row: bytes, count: int) -> Key:
    """The key of a stored row, whose first `count` values are the key columns."""
    parts: list[Any] = []
    for _column, kind, value in wire.values(row, count):
        parts.append(kind)
        parts.append(0 if value is None else value)
    return tuple(parts)


def key_from_yson(schema: TableSchema, values: Sequence[Any]) -> Key:
    """The key, or the first part of one, that a list of YSON values names. Raises: YtError."""
    if len(values) > schema.key_count:
        raise YtError(
            1,
            f"Key has {len(values)} components, the table has {schema.key_count} key columns",
        )
    parts: list[Any] = []
    for column, value in zip(schema.columns, values, strict=False):
        kind, converted = from_yson(column, value)
        check_value(column, kind, converted)
        parts += [kind, 0 if converted is None else converted]
    return tuple(parts)


def from_yson(column: Column, value: Any) -> tuple[int, wire.Value]:
    """(wire type, value) of a YSON value meant for a column.

    As the server's YSON parser does by default, integers take the column's signedness and values
    for an `any` or composite column are wrapped; nothing else is converted: `check_value` judges.
    """
    kind, result = wire.guess(value)
    wanted = column.wire_type
    if kind == wire.NULL or kind == wanted:
        return kind, result
    if wanted in (wire.ANY, wire.COMPOSITE):
        return wanted, result if kind == wire.ANY else yson.dumps(value, yson_format="binary")
    if isinstance(result, int) and kind in _INTEGRAL and wanted in _INTEGRAL:
        low, high = _INTEGRAL[wanted]
        if not low <= result <= high:
            raise violation(
                f'Error validating column "{column.name}"',
                [violation(f"Value {result} is out of allowed range [{low}, {high}]")],
            )
        return wanted, result
    return kind, result


_INTEGRAL = {wire.INT64: (-(1 << 63), (1 << 63) - 1), wire.UINT64: (0, (1 << 64) - 1)}


_ABSENT = object()
_PLAIN_NUMBERS: dict[type, tuple[int, Struct]] = {
    int: (wire.INT64, Struct("<HBBIq")),
    float: (wire.DOUBLE, Struct("<HBBId")),
    bool: (wire.BOOLEAN, Struct("<HBBIQ")),
}
_STRING_HEADER = Struct("<HBBI")
_PADDING = [b"\0" * (-length & 7) for length in range(8)]


def _encoder(index: int, column: Column) -> Callable[[Any], bytes]:
    """Encodes values of one column; the plain ones, which most are, without a detour."""
    wanted = column.wire_type

    def encode_one(value: Any) -> bytes:
        plain = type(value)
        if wanted == wire.STRING:
            if plain is str or plain is bytes:
                text: bytes = value.encode() if plain is str else value
                length = len(text)
                header = _STRING_HEADER.pack(index, wire.STRING, 0, length)
                return header + text + _PADDING[length & 7]
        elif plain in _PLAIN_NUMBERS:
            kind, packer = _PLAIN_NUMBERS[plain]
            if kind == wanted and (plain is not int or -(1 << 63) <= value < 1 << 63):
                return packer.pack(index, kind, 0, 0, value)
        return wire.encode_value(index, *from_yson(column, value))

    return encode_one


def encode(
    schema: TableSchema, items: Iterable[Mapping[str, Any]], known: Sequence[str] = ()
) -> tuple[list[str], list[bytes]]:
    """(name table, rows) of rows given as maps of YSON values.

    The name table holds the schema's columns, then the other names: those of `known`, a name table
    of the same schema, first.
    """
    names = [column.name for column in schema.columns]
    places = frozenset(names)
    encoders = [
        (column.name, _encoder(index, column)) for index, column in enumerate(schema.columns)
    ]
    extra = {name: index for index, name in enumerate(known) if index >= len(names)}
    result: list[bytes] = []
    for item in items:
        if not isinstance(item, Mapping):
            raise YtError(1, "A row must be a map")
        get = item.get
        pieces = [
            encode_one(value)
            for name, encode_one in encoders
            if (value := get(name, _ABSENT)) is not _ABSENT
        ]
        if len(pieces) < len(item):
            for name in [name for name in item if name not in places]:
                index = extra.setdefault(name, len(names) + len(extra))
                pieces.append(wire.encode_value(index, *wire.guess(item[name])))
        result.append(wire.from_chunks(pieces))
    return names + list(extra), result
