"""YOURS. Sample rows: hits in a detector, with every value that a float can have."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from yt.yson import YsonUint64

EVENT_TIME = "latched"
ODD = (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308)
ODD_4 = (math.nan, math.inf, -math.inf, -0.0, 1e-45, 3.4028234663852886e38)
"""Of four bytes: the largest, and the smallest."""


def rows(count: int, seed: int, start_us: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` hits, a few microseconds apart from ``start_us``."""
    source = random.Random(seed)
    now = start_us
    for number in range(count):
        now += source.randrange(1, 400)
        strange = source.randrange(4) == 0
        yield {
            "run": seed,
            "hit": YsonUint64(2**63 + number),
            "latched": YsonUint64(now),
            "energy": source.choice((*ODD, None)) if strange else source.expovariate(0.01),
            "charge": source.choice((*ODD_4, None)) if strange else source.gauss(0, 3),
            "samples": [source.choice(ODD) if strange else source.gauss(0, 1) for _ in range(4)],
            "fit": None
            if number % 9 == 0
            else {
                "chi2": source.choice(ODD) if strange else source.random(),
                "slope": None if number % 5 == 0 else source.gauss(0, 1),
            },
        }
