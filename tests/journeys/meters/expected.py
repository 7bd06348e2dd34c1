"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

Row = Mapping[str, Any]

BERLIN = ZoneInfo("Europe/Berlin")
LATENESS = timedelta(hours=3)
DAY_0 = date(1970, 1, 1)
FUTURE = 4_102_444_800_000_000
"""2100-01-01 in microseconds: no meter reads that early."""


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for each meter and local day that the watermark has passed."""
    days: defaultdict[tuple[int, date], list[Row]] = defaultdict(list)
    newest = datetime.min
    for row in (row for row in rows if _reason(row) is None):
        local = _local(row["read_at"])
        days[row["meter"], local.date()].append(row)
        newest = max(newest, local)
    for (meter, day), readings in days.items():
        if datetime(day.year, day.month, day.day) + timedelta(days=1) <= newest - LATENESS:
            night = [row["kwh"] for row in readings if row["tariff"] == "night"]
            yield {
                "meter": meter,
                "day": (day - DAY_0).days,
                "readings": len(readings),
                "kwh": sum(row["kwh"] for row in readings),
                "at_night": sum(night) if night else None,
            }


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each that REJECT keeps out."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _local(time_us: int) -> datetime:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)
    return moment.astimezone(BERLIN).replace(tzinfo=None)


def _reason(row: Row) -> str | None:
    if row["read_at"] is None:
        return "without a time"
    if row["read_at"] >= FUTURE:
        return "from the future"
    return "the meter runs backwards" if row["kwh"] < 0 else None
