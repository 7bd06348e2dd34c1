"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

WEAK = 4.1


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for each class of depth."""
    classes: defaultdict[str, list[Row]] = defaultdict(list)
    for row in (row for row in rows if row["magnitude"] >= WEAK):
        classes[row["depth_class"]].append(row)
    for name, quakes in classes.items():
        depths = [row["depth"] for row in quakes if row["depth"] is not None]
        yield {
            "depth_class": name,
            "quakes": len(quakes),
            "strongest": max(row["magnitude"] for row in quakes),
            "deepest": max(depths, default=None),
        }


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the earthquakes that are too weak to count."""
    yield from (("too weak", row) for row in rows if row["magnitude"] < WEAK)
