"""Rowsets between the attachments of a message and the state: rows pass through as they are."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from yt import yson

from ..core.errors import generic
from ..rows import wire
from ..rows.from_wire import Key
from ..rows.rowset import Rowset, RowsetColumn
from ..rows.schema import Column, TableSchema
from .bus import Part
from .messages import text

WIRE_FORMAT_VERSION = 1
UNVERSIONED, VERSIONED = 1, 2
"""Kinds of rowsets."""
WIRE = 0
"""The number of the wire format among the formats of a rowset."""


def names(descriptor: Any) -> list[str]:
    """Return the names by column id of a TRowsetDescriptor. Raises YtError."""
    if descriptor.wire_format_version != WIRE_FORMAT_VERSION:
        raise generic(f"Unsupported wire format version {descriptor.wire_format_version}")
    return [text(entry.name) for entry in descriptor.name_table_entries]


def joined(attachments: Sequence[Part]) -> bytes:
    """Return a rowset that came in one attachment or in several."""
    return b"".join([part for part in attachments if part])


def read(descriptor: Any, attachments: Sequence[Part]) -> tuple[list[str], list[bytes | None]]:
    """Return (names by column id, rows) of a descriptor and its attachments. Raises YtError."""
    return names(descriptor), wire.split(joined(attachments))


def present(rows: Sequence[bytes | None]) -> list[bytes]:
    """Return the rows that a client sends. Raises YtError if one of them is missing."""
    found = [row for row in rows if row is not None]
    if len(found) != len(rows):
        raise wire.malformed("a missing row")
    return found


def write(descriptor: Any, rowset: Rowset) -> list[Part]:
    """Fill in the descriptor and return the attachments."""
    describe(descriptor, rowset.columns)
    return [wire.join(rowset.rows)]


def describe(descriptor: Any, columns: Sequence[RowsetColumn]) -> None:
    """Describe columns by name and type, which is enough for the Java client."""
    descriptor.wire_format_version = WIRE_FORMAT_VERSION
    descriptor.rowset_kind = UNVERSIONED
    for column in columns:
        entry = descriptor.name_table_entries.add()
        entry.name = column.name
        entry.type = wire.ANY if column.wire_type == wire.COMPOSITE else column.wire_type


def pack(*parts: bytes) -> bytes:
    """Return parts as one attachment: their count (4 bytes), then each after its size (8)."""
    return struct.pack("<I", len(parts)) + b"".join(
        struct.pack("<Q", len(part)) + part for part in parts
    )


def unpack(attachment: bytes) -> list[bytes]:
    """Return the parts of an attachment. Raises YtError if it is not made of parts."""
    parts, position = [], 4
    try:
        (count,) = struct.unpack_from("<I", attachment)
        for _ in range(count):
            (size,) = struct.unpack_from("<Q", attachment, position)
            parts.append(attachment[position + 8 : position + 8 + size])
            position += 8 + size
    except struct.error:
        position = -1
    if position != len(attachment):
        raise generic("Malformed rowset: its parts do not fill the attachment")
    return parts


def packed_key(key: Key) -> bytes:
    """Return a key as fields of messages hold it (client/table_client/unversioned_row.cpp,
    SerializeToString): version and count of the values; of each its id, type and value."""
    pieces = [b"\0", _varint(len(key) // 2)]
    for index, (kind, value) in enumerate(zip(key[::2], key[1::2], strict=True)):
        pieces += [_varint(index), _varint(kind)]
        match kind:
            case wire.INT64:
                pieces.append(_varint((value << 1) ^ (value >> 63)))
            case wire.UINT64:
                pieces.append(_varint(value))
            case wire.DOUBLE:
                pieces.append(struct.pack("<d", value))
            case wire.BOOLEAN:
                pieces.append(bytes([value]))
            case wire.STRING | wire.ANY | wire.COMPOSITE:
                pieces += [_varint(len(value)), value]
    return b"".join(pieces)


def _varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    pieces = bytearray()
    while value > 0x7F:
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    pieces.append(value)
    return bytes(pieces)


def fill_schema(message: Any, schema: TableSchema) -> None:
    """Describe a table in a TTableSchema."""
    message.strict = schema.strict
    message.unique_keys = schema.unique_keys
    for column in schema.columns:
        _fill_column(message.columns.add(), column)


def _fill_column(message: Any, column: Column) -> None:
    message.name = column.name
    # The older name of every composite type is any; the native client compares it with type_v3.
    message.type = wire.ANY if column.composite else column.wire_type
    message.type_v3 = yson.dumps(column.to_yson()["type_v3"], yson_format="binary")
    message.required = column.required
    for name in ("lock", "group", "aggregate", "expression"):
        if name in column.extra:
            setattr(message, name, column.extra[name])
    if column.sort_order:
        message.sort_order = 0 if column.sort_order == "ascending" else 1
