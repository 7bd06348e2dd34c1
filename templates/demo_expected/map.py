"""What goes in and what must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

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


def expected(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
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


def published(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as they get into a queue: once each."""
    return [dict(row) for row in rows]


def closing(_rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows to send when all are through, to bring out what still waits: nothing waits."""
    return []


def prepare(_client: Any, _settings: Any) -> None:
    """What has to be on the cluster besides the queues' rows: nothing."""
