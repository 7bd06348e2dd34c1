"""Rowsets between the attachments of a message and the state: rows pass through as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import generic
from ..rows import wire
from ..rows.rowset import Rowset, RowsetColumn
from .bus import Part
from .messages import text

WIRE_FORMAT_VERSION = 1


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
        raise generic("Malformed rowset: a missing row")
    return found


def write(descriptor: Any, rowset: Rowset) -> list[Part]:
    """Fill in the descriptor and return the attachments."""
    describe(descriptor, rowset.columns)
    return [wire.join(rowset.rows)]


def describe(descriptor: Any, columns: Sequence[RowsetColumn]) -> None:
    """Describe columns by name and type, which is enough for the Java client."""
    descriptor.wire_format_version = WIRE_FORMAT_VERSION
    descriptor.rowset_kind = 1  # unversioned
    for column in columns:
        entry = descriptor.name_table_entries.add()
        entry.name = column.name
        entry.type = column.wire_type
