"""YOURS. Sample rows: the earthquakes of earthquakes.csv, over and over, each time at new times."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("earthquakes.csv")
_QUAKES = [*csv.DictReader(_FILE.read_text(encoding="utf-8").splitlines())]

EVENT_TIME = "time"
"""The column of the event time."""
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_FOUNDED = -33_000
"""The agency's first day, before 1970: days of a date32."""


def rows(count: int, seed: int, start_us: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` earthquakes, a second apart from ``start_us``; a few are none."""
    for number in range(count):
        quake = _QUAKES[(seed + number) % len(_QUAKES)]
        row = _row(f"{seed}-{number}", quake, start_us + (number + 1) * _SECOND)
        if number % 40 == 3:
            row["epicentre"] = {**row["epicentre"], "lat": 90.5}
        if number % 40 == 7:
            row["readings"] = []
        yield row


def _row(name: str, quake: dict[str, str], now: int) -> dict[str, Any]:
    lat, lon = float(quake["lat"]), float(quake["lon"])
    magnitude = round(float(quake["mag"]) * 4) / 4  # exact as a float of four bytes
    depth = None if quake["depth"] == "10.0" else float(quake["depth"])  # 10.0: by convention
    is_located = depth is not None
    place = quake["place"] if is_located else None
    words = sorted({*place.split()}) if place else None
    return {
        "id": name,
        "time": now,
        "magnitude": magnitude,
        "is_deep": quake["depth_class"] == "Deep",
        "readings": [{"kind": "mag", "value": magnitude}, {"kind": "depth", "value": depth}],
        "epicentre": {"lat": lat, "lon": lon, "depth": depth},
        "raw": ",".join(quake.values()),
        "day": now // _DAY,
        "latitude": int(lat) if is_located else None,
        "longitude": int(lon) if is_located else None,
        "latitude_micro": round(lat * 10**6) if is_located else None,
        "longitude_nano": round(lon * 10**9) if is_located else None,
        "tenths": round(magnitude * 10) if is_located else None,
        "depth_hm": None if depth is None else round(depth * 10),
        "depth_cm": None if depth is None else round(depth * 100_000),
        "energy": 2**63 + int(10 ** (1.5 * magnitude + 4.8)) if is_located else None,
        "depth": depth,
        "second": now // _SECOND if is_located else None,
        "since_last": -_SECOND if is_located else None,
        "founded": _FOUNDED if is_located else None,
        "founded_at": _FOUNDED * 86_400 - 1 if is_located else None,
        "founded_exactly": _FOUNDED * _DAY - 1 if is_located else None,
        "age": now - _FOUNDED * _DAY if is_located else None,
        "place": place,
        "properties": json.dumps({"class": quake["mag_class"], "place": place}),
        "note": {"depth": depth, "class": [quake["depth_class"]]} if is_located else "unknown",
        "words": words,
        "scores": [magnitude, None] if is_located else None,
        "counts": [["letters", len(place)], ["words", len(words)]] if place and words else None,
        "position": [lat, int(lon)] if is_located else None,
    }
