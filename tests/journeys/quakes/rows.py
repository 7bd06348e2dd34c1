"""YOURS. Sample rows: the earthquakes of earthquakes.csv, over and over, each time at new times."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("earthquakes.csv")
_QUAKES = [*csv.DictReader(_FILE.read_text(encoding="utf-8").splitlines())]

EVENT_TIME = "time"


def rows(count: int, seed: int, start_us: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` earthquakes, half a second apart from ``start_us``."""
    for number in range(count):
        quake = _QUAKES[(seed + number) % len(_QUAKES)]
        yield {
            "id": f"{seed}-{number}",
            "time": start_us + (number + 1) * 500_000,
            "magnitude": float(quake["mag"]),
            # Whole eighths, which a float of four bytes holds; 10.0 is set when it is not known.
            "depth": None if quake["depth"] == "10.0" else round(float(quake["depth"]) * 8) / 8,
            "depth_class": quake["depth_class"],
            "place": quake["place"],
        }
