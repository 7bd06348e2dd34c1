"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

PAUSE, LONGEST, LATENESS = 600_000_000, 7_200_000_000, 300_000_000


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the swarms whose end the watermark has passed."""
    regions: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        regions[row["region"]].append(row)
    watermark = max(int(row["time"]) for row in rows) - LATENESS
    for region, quakes in regions.items():
        swarm: list[Row] = []
        for quake in sorted(quakes, key=lambda row: int(row["time"])):
            if swarm and not _goes_on(int(swarm[-1]["time"]), int(quake["time"])):
                yield _row(region, swarm)
                swarm = []
            swarm.append(quake)
        if not _goes_on(int(swarm[-1]["time"]), watermark):
            yield _row(region, swarm)


def _goes_on(time: int, later: int) -> bool:
    return later - time <= PAUSE and later // LONGEST == time // LONGEST


def _row(region: str, swarm: Sequence[Row]) -> Row:
    return {
        "region": region,
        "first": int(swarm[0]["time"]),
        "last": int(swarm[-1]["time"]),
        "quakes": len(swarm),
        "strongest": max(row["magnitude"] for row in swarm),
    }


def rejected(_: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield nothing: the sample has no row without a time or from the future."""
    yield from ()
