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
from ..tables.sorted import Stamps, Version

Row = tuple[int, dict[int, bytes], Stamps | None]
"""A version in pieces; without any for a deletion."""


def encode(
    versions: Sequence[Version], keys: int, columns: Sequence[int], limit: int | None = None
) -> bytes:
    """Return the row of these versions, the oldest first; `columns` are those to show, by index.

    Each column has at most `limit` versions, and each is a value that was written then.
    """
    rows: list[Row] = [
        (time, (wire.chunks(row) if row is not None else {}) | (added or {}), stamps)
        for time, row, stamps, added in reversed(versions)
    ]
    last = next((pieces for _, pieces, _ in rows if pieces), {})
    histories = {index: _history(rows, index, limit) for index in last if index >= keys}
    # The times do not depend on which columns are shown.
    written = {time for time, pieces, _ in rows[:limit] if pieces}.union(*histories.values())
    deleted = [time for time, pieces, _ in rows[:limit] if not pieces]
    values = [
        wire.renumbered(piece, place) + _WORD.pack(time)
        for place, index in enumerate(columns)
        for time, piece in histories.get(index, {}).items()
    ]
    key = [last[index] for index in columns if index < keys] if last else []
    return b"".join(
        [
            struct.pack("<4I", len(values), len(key), len(written), len(deleted)),
            *map(_WORD.pack, sorted(written, reverse=True)),
            *map(_WORD.pack, deleted),
            _bitmap([piece[2] == wire.NULL for piece in key]),
            *(_bare(piece) for piece in key),
            *values,
        ]
    )


def _history(rows: Sequence[Row], column: int, limit: int | None) -> dict[int, bytes]:
    """Return the last values of a column by the times of their writes; a deletion counts as one."""
    found: dict[int, bytes | None] = {}
    for time, pieces, stamps in rows:
        written = stamps[column] if stamps else time
        if written:
            found[written] = pieces.get(column)
    return {time: piece for time, piece in list(found.items())[:limit] if piece is not None}


_WORD = struct.Struct("<Q")


def _bitmap(bits: Sequence[bool]) -> bytes:
    size = (len(bits) + 63) // 64 * 8
    return sum(1 << place for place, bit in enumerate(bits) if bit).to_bytes(size, "little")


def _bare(chunk: bytes) -> bytes:
    """Return an encoded value without its header; a text after its length."""
    kind, (length,) = chunk[2], struct.unpack_from("<I", chunk, 4)
    return (_WORD.pack(length) if kind >= wire.STRING else b"") + chunk[8:]
