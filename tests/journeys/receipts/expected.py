"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

_HOUR = 3_600_000_000
_EAST = 5 * _HOUR
"""Yekaterinburg is five hours ahead of UTC, summer and winter."""
_FUTURE = 4_102_444_800_000_000
"""2100-01-01 in microseconds: no receipt is that late."""


def _once(rows: Sequence[Row]) -> Iterable[Row]:
    good = (row for row in rows if _reason(row) is None)
    return {(row["store"], row["receipt"]): row for row in good}.values()


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each receipt once."""
    for row in _once(rows):
        yield {**row, "pieces": sum(item["pieces"] for item in row["items"])}


def archive(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the same with the local day and all items."""
    for row in _once(rows):
        yield {**row, "day": (row["sold_at"] + _EAST) // (24 * _HOUR)}


def returns(rows: Sequence[Row]) -> Iterable[Row]:
    """Return the receipts of goods that were brought back."""
    return [row for row in _once(rows) if row["cents"] < 0]


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each that REJECT keeps out."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _reason(row: Row) -> str | None:
    if row["sold_at"] > _FUTURE:
        return "from the future"
    return None if row["items"] else "nothing was sold"
