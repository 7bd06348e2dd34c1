"""YOURS. The expected output, computed from the same rows by plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of "output": the totals of each auction over all its bids."""
    prices: dict[int, list[int]] = {}
    for row in rows:
        prices.setdefault(row["auction"], []).append(row["price"])
    for auction, paid in prices.items():
        yield {"auction": auction, "bids": len(paid), "total": sum(paid), "highest": max(paid)}
