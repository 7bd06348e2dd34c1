"""YOURS. The expected outputs, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

#: Microseconds, as PAUSE_US, LONGEST_US and LATENESS in transform.py.
PAUSE = 1_800_000_000
LONGEST = 14_400_000_000
LATENESS = 600_000_000
#: 2100-01-01 in microseconds: rows.py puts only wrong dates behind it.
_FUTURE = 4_102_444_800_000_000


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of "output": the sessions whose end the watermark has passed."""
    of_bidder: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in (row for row in rows if _reason(row) is None):
        of_bidder[row["bidder"]].append((int(row["date_time"]), row["price"]))
    watermark = max(time for bids in of_bidder.values() for time, _ in bids) - LATENESS
    for bidder, bids in of_bidder.items():
        session: list[tuple[int, int]] = []
        for time, price in sorted(bids):
            if session and not _is_one(session[-1][0], time):
                yield _row(bidder, session)
                session = []
            session.append((time, price))
        if not _is_one(session[-1][0], watermark):
            yield _row(bidder, session)


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each rejected row."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _reason(row: Row) -> str | None:
    if row["date_time"] is None:
        return "without event time"
    return "from the future" if int(row["date_time"]) > _FUTURE else None


def _is_one(time: int, later: int) -> bool:
    """Return whether a bid at ``later`` is of the session of the one at ``time``."""
    return later <= time or (later - time <= PAUSE and later // LONGEST == time // LONGEST)


def _row(bidder: int, session: list[tuple[int, int]]) -> Row:
    return {
        "bidder": bidder,
        "first_bid": session[0][0],
        "last_bid": session[-1][0],
        "bids": len(session),
        "total": sum(price for _, price in session),
    }
