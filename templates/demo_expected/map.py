"""What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

#: The columns compared; one output row is one tuple of them.
COLUMNS = (
    "event_id",
    "auction",
    "bidder",
    "price_eur",
    "channel",
    "url",
    "date_time",
    "extra",
)


def expected(rows: Iterable[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """The output rows of ``rows`` and how often each has to appear."""
    return Counter(
        (
            row["event_id"],
            row["auction"],
            row["bidder"],
            row["price"] * 908 // 1000,
            row["channel"],
            row["url"],
            int(row["date_time"]),
            row["extra"],
        )
        for row in rows
    )
