"""What goes in and what must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from yt.yson import YsonUint64

Row = Mapping[str, Any]

#: The columns compared; one output row is one tuple of them.
COLUMNS = ("auction", "window_start", "window_end", "bids", "total")

#: Microseconds, as WINDOW and LATENESS in transform.py.
WINDOW = 10_000_000
LATENESS = 10_000_000
_HOUR = 3_600_000_000


def expected(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    """The output rows of ``rows``: the windows that the watermark has passed, once each."""
    bids: Counter[tuple[int, int]] = Counter()
    total: Counter[tuple[int, int]] = Counter()
    newest = 0
    for row in rows:
        time = int(row["date_time"])
        window = row["auction"], time - time % WINDOW
        bids[window] += 1
        total[window] += row["price"]
        newest = max(newest, time)
    return Counter(
        (auction, start, start + WINDOW, count, total[auction, start])
        for (auction, start), count in bids.items()
        if start + WINDOW <= newest - LATENESS
    )


def published(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as they get into a queue: once each."""
    return [dict(row) for row in rows]


def closing(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows to send one after the other when all are through, to bring out what still waits.

    The first one moves the watermark on, and the batch of the second one is run under it.
    """
    later = max(int(row["date_time"]) for row in rows) + _HOUR
    return [
        {**rows[0], "event_id": f"closing-{later}-{number}", "date_time": YsonUint64(later)}
        for number in (1, 2)
    ]


def prepare(_client: Any, _settings: Any) -> None:
    """What has to be on the cluster besides the queues' rows: nothing."""
