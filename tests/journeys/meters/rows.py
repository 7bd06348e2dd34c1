"""YOURS. Sample rows: the hours of twenty meters, over a night on which the clocks change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

EVENT_TIME = "read_at"
METERS = range(70_001, 70_021)
_HOUR_US = 3_600_000_000
#: 2023-10-27T00:00:00Z in microseconds: the clocks went back two days later.
START_US = 1_698_364_800_000_000


def rows(count: int, seed: int = 1, start_us: int = START_US) -> Iterator[dict[str, Any]]:
    """Yield ``count`` readings, of all meters each hour, some without a time."""
    source = random.Random(seed)
    for number in range(count):
        hour, meter = divmod(number, len(METERS))
        read_at = start_us + hour * _HOUR_US + source.randrange(60_000_000)
        yield {
            "meter": METERS[meter],
            "read_at": None if number % 97 == 96 else read_at,
            "kwh": -0.1 if number % 101 == 100 else source.randrange(40) / 10,
            "tariff": source.choice(("day", "night", None)),
        }
