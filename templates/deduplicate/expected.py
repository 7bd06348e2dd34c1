"""YOURS. The expected outputs, computed from the same rows by plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

#: 2100-01-01 in microseconds: rows.py puts only wrong dates behind it.
_FUTURE = 4_102_444_800_000_000


def expected(rows: Sequence[Row]) -> Iterable[Row]:
    """Return the rows of "output": one for each event, however often it was published."""
    return {row["event_id"]: row for row in rows if _reason(row) is None}.values()


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each rejected row."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _reason(row: Row) -> str | None:
    if row["date_time"] is None:
        return "without event time"
    return "from the future" if int(row["date_time"]) > _FUTURE else None
