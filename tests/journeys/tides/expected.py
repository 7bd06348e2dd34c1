"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

Row = Mapping[str, Any]


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for each gauge and month of its own clock."""
    months: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for row in (row for row in rows if _reason(row) is None):
        measured = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=row["measured"])
        first = measured.astimezone(ZoneInfo(row["zone"])).date().replace(day=1)
        months[row["station"], (first - date(1970, 1, 1)).days].append(row["level_mm"])
    for (station, month), levels in months.items():
        yield {
            "station": station,
            "month": month,
            "readings": len(levels),
            "highest_mm": max(levels),
            "lowest_mm": min(levels),
            "total_mm": sum(levels),
        }


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each that REJECT keeps out."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _reason(row: Row) -> str | None:
    if row["level_mm"] in (None, -32_767):
        return "the gauge was out of order"
    return "no such tide" if abs(row["level_mm"]) > 20_000 else None
