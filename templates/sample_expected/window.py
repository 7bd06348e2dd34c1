"""YOURS. The expected output, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

#: Microseconds, as WINDOW and LATENESS in transform.py.
WINDOW = 10_000_000
LATENESS = 10_000_000


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the output rows of ``rows``: the windows that the watermark has passed, once each."""
    bids: Counter[tuple[int, int]] = Counter()
    total: Counter[tuple[int, int]] = Counter()
    newest = 0
    for row in rows:
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
