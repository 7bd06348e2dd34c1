"""What goes in and what must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

#: The columns compared; one output row is one tuple of them.
COLUMNS = ("event_id", "auction", "bidder", "price", "category", "seller", "date_time")

#: What is known of the auctions; of every tenth nothing is.
REFERENCE = {
    auction: {"category": f"category {auction % 7}", "seller": auction * 10}
    for auction in range(1_000, 1_100)
    if auction % 10
}


def expected(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    """The output rows of ``rows`` and how often each has to appear."""
    return Counter(
        (
            row["event_id"],
            row["auction"],
            row["bidder"],
            row["price"],
            REFERENCE.get(row["auction"], {}).get("category"),
            REFERENCE.get(row["auction"], {}).get("seller"),
            int(row["date_time"]),
        )
        for row in rows
    )


def published(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as they get into a queue: once each."""
    return [dict(row) for row in rows]


def closing(_rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows to send when all are through, to bring out what still waits: nothing waits."""
    return []


def prepare(client: Any, settings: Any) -> None:
    """Fill the reference table."""
    rows = [{"auction": auction, **known} for auction, known in REFERENCE.items()]
    client.insert_rows(settings.reference, rows)
