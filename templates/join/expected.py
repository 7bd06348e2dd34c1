"""YOURS. The expected outputs, computed from the same rows by plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .rows import REFERENCE

Row = Mapping[str, Any]

_KNOWN = {row["auction"]: row for row in REFERENCE}
_UNKNOWN: Row = {"category": None, "seller": None}


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of "output": each bid with what is known of its auction."""
    for row in rows:
        if _reason(row) is None:
            known = _KNOWN.get(row["auction"], _UNKNOWN)
            yield {**row, "category": known["category"], "seller": known["seller"]}


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each rejected row."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _reason(row: Row) -> str | None:
    if row["price"] <= 0:
        return "the price is not positive"
    return "the bidder is nobody" if row["bidder"] < 1 else None
