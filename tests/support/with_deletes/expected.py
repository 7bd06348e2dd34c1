"""What transform.py must make of rows, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

_COLUMNS = ("auction", "date_time", "event_id", "bidder", "price", "channel")
_MINUTE_US = 60_000_000


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the newest bid of each auction that no bid has closed since."""
    newest: dict[int, Row] = {}
    for row in (_seen(row) for row in rows if _reason(row) is None):
        known = newest.get(row["auction"])
        if known is None or _rank(row) > _rank(known):
            newest[row["auction"]] = row
    for row in newest.values():
        if not _is_closing(row):
            yield {name: row[name] for name in _COLUMNS}


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each rejected row."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _seen(row: Row) -> Row:
    late = row["bidder"] % 3 * _MINUTE_US
    return {**row, "auction": row["auction"] % 20, "date_time": int(row["date_time"]) - late}


def _is_closing(row: Row) -> bool:
    return bool(row["price"] % 3 == 0)


def _rank(row: Row) -> tuple[Any, ...]:
    """Return what decides between two bids: of one time, a closing one or the greater one."""
    return row["date_time"], _is_closing(row), row["event_id"]


def _reason(row: Row) -> str | None:
    if row["price"] <= 0:
        return "the price is not positive"
    if row["url"] is not None and f"/{row['auction']}?" not in row["url"]:
        return "the URL is of another auction"
    return None
