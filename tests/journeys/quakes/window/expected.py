"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

MINUTE = 60_000_000
LATENESS = 30_000_000


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for each class of depth and minute that the watermark has passed."""
    groups: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["depth_class"], row["time"] // MINUTE * MINUTE].append(row)
    newest = max(row["time"] for row in rows)
    for (depth_class, minute), group in groups.items():
        if minute + MINUTE <= newest - LATENESS:
            depths = [row["depth"] for row in group if row["depth"] is not None]
            yield {
                "depth_class": depth_class,
                "minute": minute,
                "quakes": len(group),
                "strongest": max(row["magnitude"] for row in group),
                "mean_depth": sum(depths) / len(depths) if depths else None,
            }


def rejected(_: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield nothing: the sample has no row without a time or from the future."""
    yield from ()
