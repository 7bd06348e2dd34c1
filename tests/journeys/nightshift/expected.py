"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

MINUTE = 60_000_000
DAY = 1_440 * MINUTE
NOON, PAUSE, LATENESS = DAY // 2, 45 * MINUTE, 20 * MINUTE
FUTURE = 4_102_444_800_000_000
"""2100-01-01 in microseconds: no sighting is that late."""


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the stays whose end the watermark has passed."""
    of_worker: defaultdict[str, list[Row]] = defaultdict(list)
    for row in (row for row in rows if _reason(row) is None):
        of_worker[row["worker"]].append(row)
    watermark = max(row["seen"] for found in of_worker.values() for row in found) - LATENESS
    for worker, found in of_worker.items():
        stay: list[Row] = []
        for row in sorted(found, key=lambda row: int(row["seen"])):
            if stay and not _goes_on(stay[-1]["seen"], row["seen"]):
                yield _row(worker, stay)
                stay = []
            stay.append(row)
        if not _goes_on(stay[-1]["seen"], watermark):
            yield _row(worker, stay)


def _goes_on(time: int, later: int) -> bool:
    same_day = (later - NOON) // DAY == (time - NOON) // DAY
    return later <= time or (later - time <= PAUSE and same_day)


def _row(worker: str, stay: Sequence[Row]) -> Row:
    came, went = stay[0]["seen"], stay[-1]["seen"]
    heard = [row["noise_db"] for row in stay if row["noise_db"] is not None]
    return {
        "worker": worker,
        "came": came,
        "went": went,
        "sightings": len(stay),
        "loudest_db": max(heard, default=None),
        "past_midnight": came // DAY != went // DAY,
    }


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each that REJECT keeps out."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _reason(row: Row) -> str | None:
    if row["seen"] is None:
        return "without a time"
    return "from the future" if row["seen"] > FUTURE else None
