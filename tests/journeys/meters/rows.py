"""YOURS. Sample rows: the minutes of twenty meters, on a day on which the clocks change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

EVENT_TIME = "read_at"
METERS = range(70_001, 70_021)
_MINUTE_US = 60_000_000
START_US = 1_698_539_400_000_000
"""2023-10-29T00:30:00Z in microseconds: half an hour later the clocks went back."""


def rows(count: int, seed: int = 1, start_us: int = START_US) -> Iterator[dict[str, Any]]:
    """Yield ``count`` readings, of all meters each minute, some without a time."""
    source = random.Random(seed)
    for number in range(count):
        minute, meter = divmod(number, len(METERS))
        read_at = start_us + minute * _MINUTE_US + source.randrange(_MINUTE_US)
        yield {
            "meter": METERS[meter],
            "read_at": None if number % 97 == 96 else read_at,
            "kwh": -0.1 if number % 101 == 100 else source.randrange(40) / 10,
            "tariff": source.choice(("day", "night", None)),
        }
