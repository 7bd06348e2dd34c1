"""YOURS. The expected outputs, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

#: Microseconds, as WINDOW and LATENESS in transform.py.
WINDOW = 10_000_000
LATENESS = 10_000_000
#: 2100-01-01 in microseconds: rows.py puts only wrong dates behind it.
_FUTURE = 4_102_444_800_000_000


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of "output": the windows that the watermark has passed, once each."""
    bids: Counter[tuple[int, int]] = Counter()
    total: Counter[tuple[int, int]] = Counter()
    newest = 0
    for row in (row for row in rows if _reason(row) is None):
        time = int(row["date_time"])
        window = row["auction"], time - time % WINDOW
        bids[window] += 1
        total[window] += row["price"]
        newest = max(newest, time)
    for (auction, start), count in bids.items():
        if start + WINDOW <= newest - LATENESS:
            yield {
                "auction": auction,
                "window_start": start,
                "window_end": start + WINDOW,
                "bids": count,
                "total": total[auction, start],
            }


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each rejected row."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _reason(row: Row) -> str | None:
    if row["date_time"] is None:
        return "without event time"
    return "from the future" if int(row["date_time"]) > _FUTURE else None
