"""Rows and keys given as YSON values become wire rows, or at once the rows that a table stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from struct import Struct
from typing import Any

from yt import yson

from ..core.errors import RefusedError, YtError
from . import wire
from .from_wire import (
    TABLET_INDEX,
    WRITE,
    Key,
    Modification,
    RowReader,
    require_number,
    require_yson,
)
from .schema import SCHEMA_VIOLATION, SYSTEM_COLUMNS, Column, TableSchema, check_value, violation

Item = Mapping[str, Any]
Encoder = Callable[[Any], bytes]


class ItemReader:
    """Turns maps into modifications of a table of one schema, as `RowReader` does with wire rows.

    `reader` finds the `RowReader` for a name table: items that are not plain go through it.
    """

    def __init__(self, schema: TableSchema, reader: Callable[[Sequence[str]], RowReader]) -> None:
        self._schema = schema
        self._reader = reader
        stored = [
            (index, column)
            for index, column in enumerate(schema.columns)
            if column.name not in SYSTEM_COLUMNS
        ]
        # Without a null: it is an error that the value is missing, or at least that a key's is.
        self._columns: list[tuple[str, Encoder, bytes | None]] = [
            (
                column.name,
                _key_encoder(encoder(index, column))
                if column.sort_order
                else encoder(index, column),
                None
                if column.required or column.sort_order
                else wire.encode_value(index, wire.NULL, None),
            )
            for index, column in stored
        ]
        names = {column.name for _, column in stored if column.expression is None}
        # The driver adds a null for each column that an item lacks, "$tablet_index" among them
        # (client/driver/table_commands.cpp, SetTreatMissingAsNull): seen with the RPC driver.
        self._width = len(stored) + (0 if schema.sorted else 1)
        self._names = names if schema.sorted else names | {TABLET_INDEX}
        self._count = len(stored).to_bytes(8, "little")

    def modification(self, kind: int, item: Item) -> Modification:
        """Return the modification by one item. Raises YtError for an item that is refused."""
        return self.modifications(kind, [item])[0]

    def modifications(self, kind: int, items: Iterable[Item]) -> list[Modification]:
        """Return the modifications by items. Raises YtError for an item that is refused."""
        if kind != WRITE:
            return [self._general(kind, item) for item in items]
        wire.require_value_count(self._width)
        plain, general = self._plain, self._general
        return [plain(item) or general(kind, item) for item in items]

    def _plain(self, item: Item) -> Modification | None:
        """Return the item written whole; None when there is anything unusual about it."""
        get = item.get
        tablet = get(TABLET_INDEX)
        if not (item.keys() <= self._names and (tablet is None or type(tablet) is int)):
            return None
        pieces = [self._count]
        for name, encode_one, null in self._columns:
            value = get(name)
            if value is not None:
                pieces.append(encode_one(value))
            elif null is not None:
                pieces.append(null)
            else:
                return None
        row = b"".join(pieces)
        return (WRITE, tablet, row) if len(row) <= wire.MAX_VALUE_LENGTH else None

    def _general(self, kind: int, item: Item) -> Modification:
        _require_known(item, self._names | SYSTEM_COLUMNS.keys())
        names, (row,) = encode(self._schema, [item])
        return self._reader(names).modification(kind, row)


def require_keys(schema: TableSchema, items: Iterable[Item]) -> None:
    """Raise YtError for an item with a column that is not part of the key."""
    keys = schema.columns[: schema.key_count]
    names = frozenset(column.name for column in keys if column.expression is None)
    for item in items:
        _require_known(item, names)


def _require_known(item: Item, names: Set[str]) -> None:
    for name in item:
        if name not in names:
            # The parser of a request's body refuses it (client/table_client/table_consumer.cpp).
            raise RefusedError(SCHEMA_VIOLATION, f'No column "{name}" in table schema')


def encode(
    schema: TableSchema, items: Iterable[Item], known: Sequence[str] = ()
) -> tuple[list[str], list[bytes]]:
    """Return (name table, rows) of rows given as maps of YSON values.

    The name table holds the schema's columns, then the other names: those of `known`, a name table
    of the same schema, first. Raises YtError for a value that its column does not take.
    """
    names = [column.name for column in schema.columns]
    places = frozenset(names)
    encoders = [
        (column.name, encoder(index, column)) for index, column in enumerate(schema.columns)
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


_ABSENT = object()


def key_from_yson(schema: TableSchema, values: Sequence[Any]) -> Key:
    """Return the key, or the first part of one, that a list of YSON values names.

    Raises YtError.
    """
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
    """Return (wire type, value) of a YSON value meant for a column.

    As the server's YSON parser does by default, integers take the column's signedness and values
    for an `any` column are wrapped; nothing else is converted: `check_value` judges.
    """
    kind, result = wire.guess(value)
    wanted = column.wire_type
    if kind == wire.NULL or kind == wanted:
        return kind, result
    if wanted == wire.ANY:
        # A key is compared, so it keeps its type (typeAnyAcceptsAllValues in unversioned_row.cpp).
        if column.sort_order:
            return kind, result
        return wanted, yson.dumps(value, yson_format="binary")
    if (kind, wanted) == (wire.ANY, wire.COMPOSITE):
        return wanted, result
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


def encoder(index: int, column: Column) -> Encoder:
    """Return a function that checks and encodes values of one column, plain ones fast."""

    def general(value: Any) -> bytes:
        kind, converted = from_yson(column, value)
        check_value(column, kind, converted)
        require_yson(kind, converted)
        return wire.encode_value(index, kind, converted)

    wanted = column.wire_type
    if column.scalar.judge:
        return general
    if wanted == wire.STRING:
        return _text_encoder(index, column.scalar.utf8, general)
    if wanted in _INTEGRAL:
        low, high = column.scalar.bounds or _INTEGRAL[wanted]
        return _integer_encoder(index, wanted, low, high, general)
    if wanted == wire.DOUBLE:
        return _double_encoder(index, general)
    return general


def _text_encoder(index: int, utf8: bool, general: Encoder) -> Encoder:
    pack = Struct("<II").pack
    header = index | wire.STRING << 16

    def encode_one(value: Any) -> bytes:
        plain = type(value)
        if plain is str:
            value = value.encode()
        elif plain is not bytes or (utf8 and not (value.isascii() or wire.is_text(value))):
            return general(value)
        length = len(value)
        encoded: bytes = pack(header, length) + value + _PADDING[length & 7]
        return encoded

    return encode_one


_PADDING = [b"\0" * (-length & 7) for length in range(8)]


def _integer_encoder(index: int, kind: int, low: int, high: int, general: Encoder) -> Encoder:
    pack = Struct("<QQ" if kind == wire.UINT64 else "<Qq").pack
    header = index | kind << 16

    def encode_one(value: Any) -> bytes:
        plain = type(value)
        is_plain = plain is int or (plain is yson.YsonUint64 and not value.attributes)
        return pack(header, value) if is_plain and low <= value <= high else general(value)

    return encode_one


def _key_encoder(encode_value: Encoder) -> Encoder:
    def encode_one(value: Any) -> bytes:
        require_number(value)
        return encode_value(value)

    return encode_one


def _double_encoder(index: int, general: Encoder) -> Encoder:
    pack = Struct("<Qd").pack
    header = index | wire.DOUBLE << 16

    def encode_one(value: Any) -> bytes:
        return pack(header, value) if type(value) is float else general(value)

    return encode_one
