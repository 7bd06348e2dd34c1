"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

WEAK, STRONG = 4.1, 4.5


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the last earthquake of each place, if it was a strong one."""
    last: dict[str, Row] = {}
    for row in (row for row in rows if row["magnitude"] >= WEAK):
        known = last.get(row["place"])
        if known is None or (row["time"], row["id"]) > (known["time"], known["id"]):
            last[row["place"]] = row
    for row in last.values():
        if row["magnitude"] >= STRONG:
            yield {name: row[name] for name in ("place", "time", "id", "magnitude", "depth")}


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the earthquakes that are too weak to count."""
    yield from (("too weak", row) for row in rows if row["magnitude"] < WEAK)
