"""YOURS. The expected outputs, computed from the same rows by plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

_COLUMNS = ("auction", "date_time", "event_id", "bidder", "price", "channel")


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of "output": the newest bid of each auction, in whatever order they came."""
    newest: dict[int, Row] = {}
    for row in (row for row in rows if _reason(row) is None):
        known = newest.get(row["auction"])
        if known is None or _rank(row) > _rank(known):
            newest[row["auction"]] = row
    for row in newest.values():
        yield {name: row[name] for name in _COLUMNS}


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each rejected row."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _rank(row: Row) -> tuple[Any, ...]:
    """Return what decides between two bids: of the same time, the next column of OUTPUTS."""
    return row["date_time"], row["event_id"]


def _reason(row: Row) -> str | None:
    if row["price"] <= 0:
        return "the price is not positive"
    if row["url"] is not None and f"/{row['auction']}?" not in row["url"]:
        return "the URL is of another auction"
    return None
