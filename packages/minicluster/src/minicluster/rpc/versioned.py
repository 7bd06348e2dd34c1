"""Rows with all their versions, as `VersionedLookupRows` answers them: the native client asks for
them when it advances a consumer.

Layout: client/table_client/wire_protocol.cpp, WriteVersionedRow. Counts of values, keys, write and
delete timestamps (4 bytes each); the timestamps, the latest first; the keys without headers, after
a bitmap of those that are null; the values with theirs, each before its timestamp.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..rows import wire
from ..tables.sorted import Version


def encode(versions: Sequence[Version], keys: int, columns: Sequence[int]) -> bytes:
    """Return the row of these versions, the oldest first; `columns` are those to show, by index.

    Model: a version holds all the columns, also those that its write left alone.
    """
    latest = list(reversed(versions))
    written = [time for time, row in latest if row is not None]
    deleted = [time for time, row in latest if row is None]
    values: list[bytes] = []
    rows = [(time, wire.chunks(row)) for time, row in latest if row is not None]
    for place, index in enumerate(columns):
        if index >= keys:
            for time, pieces in rows:
                values.append(wire.renumbered(pieces[index], place) + _WORD.pack(time))
    shown = [index for index in columns if index < keys]
    key = [rows[0][1][index] for index in shown] if rows else []
    return b"".join(
        [
            struct.pack("<4I", len(values), len(key), len(written), len(deleted)),
            *map(_WORD.pack, written + deleted),
            _bitmap([piece[2] == wire.NULL for piece in key]),
            *(_bare(piece) for piece in key),
            *values,
        ]
    )


_WORD = struct.Struct("<Q")


def _bitmap(bits: Sequence[bool]) -> bytes:
    size = (len(bits) + 63) // 64 * 8
    return sum(1 << place for place, bit in enumerate(bits) if bit).to_bytes(size, "little")


def _bare(chunk: bytes) -> bytes:
    """Return an encoded value without its header; a text after its length."""
    kind, (length,) = chunk[2], struct.unpack_from("<I", chunk, 4)
    return (_WORD.pack(length) if kind >= wire.STRING else b"") + chunk[8:]
