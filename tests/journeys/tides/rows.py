"""YOURS. Sample rows: the levels of ten tide gauges all over the world, over twenty years."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

EVENT_TIME = "measured"

GAUGES = {
    "Apia": "Pacific/Apia",
    "Chatham": "Pacific/Chatham",
    "Galveston": "America/Chicago",
    "Horta": "Atlantic/Azores",
    "Kiritimati": "Pacific/Kiritimati",
    "Lord Howe": "Australia/Lord_Howe",
    "Mumbai": "Asia/Kolkata",
    "New York": "America/New_York",
    "St John's": "America/St_Johns",
    "Tokyo": "Asia/Tokyo",
}
"""Among them zones of half and of quarter hours, one whose summer time is of half an hour, and one
that left out a whole day (Apia, 2011-12-30)."""
_HOUR_US = 3_600_000_000
START_US = 1_041_379_200_000_000
"""2003-01-01T00:00:00Z in microseconds."""


def rows(count: int, seed: int = 1, start_us: int = START_US) -> Iterator[dict[str, Any]]:
    """Yield ``count`` levels, some eight hours apart, from ``start_us``."""
    source = random.Random(seed)
    gauges = [*GAUGES.items()]
    now = start_us
    for number in range(count):
        now += 8 * _HOUR_US + source.randrange(_HOUR_US)
        station, zone = gauges[source.randrange(len(gauges))]
        level = round(1_500 * math.sin(now / _HOUR_US * 0.506) + source.gauss(0, 200))
        yield {
            "station": station,
            "zone": zone,
            "measured": now,
            "level_mm": source.choice((None, -32_767, 99_999)) if number % 40 == 0 else level,
        }
