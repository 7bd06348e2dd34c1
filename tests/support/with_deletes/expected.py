"""What transform.py must make of rows, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

_COLUMNS = ("auction", "date_time", "event_id", "bidder", "price", "channel")
_MINUTE_US, _LATE_US = 60_000_000, 61_000_000


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the newest bid of each key that no bid has closed since."""
    newest: dict[int, Row] = {}
    for row in (seen(row) for row in rows if _reason(row) is None):
        known = newest.get(row["auction"])
        if known is None or rank(row) > rank(known):
            newest[row["auction"]] = row
    for row in newest.values():
        if not row["is_closed"]:
            yield {name: row[name] for name in _COLUMNS}


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each rejected row."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def seen(row: Row) -> Row:
    """Return what transform() makes of a bid."""
    late, time = row["bidder"] % 3, int(row["date_time"])
    own = int(row["event_id"].replace("-", ""))
    auction = (time // _MINUTE_US - late) * 4 + row["auction"] % 4 if contends(row) else own
    closes = contends(row) and row["price"] % 3 == 0 and (late == 0 or row["price"] == 99)
    return {**row, "auction": auction, "date_time": time - late * _LATE_US, "is_closed": closes}


def contends(row: Row) -> bool:
    """Return whether the bid of a queue has no key of its own."""
    return bool(row["auction"] % 3 == 0)


def rank(row: Row) -> tuple[Any, ...]:
    """Return what decides between two bids: of one time, a closing one or the greater one."""
    return row["date_time"], row["is_closed"], row["event_id"]


def _reason(row: Row) -> str | None:
    if row["price"] <= 0:
        return "the price is not positive"
    if row["url"] is not None and f"/{row['auction']}?" not in row["url"]:
        return "the URL is of another auction"
    return None
