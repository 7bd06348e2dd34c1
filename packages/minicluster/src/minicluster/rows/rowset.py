"""Answers with rows: the rows in the wire format, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import wire
from .types import LogicalType


@dataclass(frozen=True)
class RowsetColumn:
    """A column of an answer: its name and the wire type of its non-null values."""

    name: str
    wire_type: int
    logical: LogicalType | None = None
    """The type, when its values have names in them: other front ends than RPC write them."""


@dataclass
class Rowset:
    """An answer: rows whose column ids index `columns`; None is a row that was not found."""

    columns: list[RowsetColumn]
    rows: Sequence[bytes | None]

    def to_dicts(self) -> list[dict[str, Any] | None]:
        """Return rows as Python values: bytes for strings, parsed YSON for any and composite."""
        names = [column.name for column in self.columns]
        return [None if row is None else wire.to_dict(row, names) for row in self.rows]
