"""YOURS. Sample rows: the nights of sixteen workers, from about 21:30 to about 6:00."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

EVENT_TIME = "seen"
WORKERS = [f"w-{number:02}" for number in range(16)]
FORGOTTEN = "w-left-behind"
"""A badge that was left in the hall; it is seen day and night."""
_MINUTE_US = 60_000_000
_DAY_US = 24 * 60 * _MINUTE_US


def rows(count: int, seed: int, start_us: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` sightings, about a minute apart at night; by day of the forgotten badge."""
    source = random.Random(seed)
    now = start_us
    for number in range(count):
        minute = now % _DAY_US // _MINUTE_US
        is_night = minute >= 21 * 60 + 30 or minute < 6 * 60
        # The same pace in both halls: one that is further behind than LATENESS has late rows.
        now += _MINUTE_US if is_night else 15 * _MINUTE_US
        # Some have a break of an hour, each at a time of their own.
        awake = [
            name for at, name in enumerate(WORKERS) if at % 3 or not 0 <= minute - 20 * at < 60
        ]
        is_worker = is_night and source.randrange(20)
        yield {
            "worker": source.choice(awake) if is_worker else FORGOTTEN,
            "seen": None if number % 83 == 82 else now + source.randrange(40_000_000),
            "sensor": source.randrange(1, 40),
            "noise_db": None if number % 7 == 0 else source.randrange(400, 1_100) / 8,
        }
