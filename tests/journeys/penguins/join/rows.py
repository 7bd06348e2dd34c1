"""YOURS. Sample rows: the penguins of penguins-raw.csv, over and over."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("penguins-raw.csv")
_PENGUINS = [*csv.DictReader(_FILE.read_text(encoding="utf-8").splitlines())]
_DAY_0 = date(1970, 1, 1)

EVENT_TIME: str | None = None
"""None of their columns is an event time."""

REFERENCE: list[dict[str, Any]] = [
    {
        "species": "Adelie",
        "latin": "Pygoscelis adeliae",
        "first_described": None,
        "usual_mass": 4096.0,
    },
    {
        "species": "Gentoo",
        "latin": "Pygoscelis papua",
        "first_described": (date(1981, 5, 1) - _DAY_0).days,
        "usual_mass": None,
    },
]
"""Nothing is known of the third species, the Chinstrap."""


def rows(count: int, seed: int, start_us: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` penguins; they have no event time, so ``start_us`` plays no part."""
    for number in range(count):
        penguin = _PENGUINS[(seed + number) % len(_PENGUINS)]
        length, depth = penguin["Culmen Length (mm)"], penguin["Culmen Depth (mm)"]
        mass, comments = penguin["Body Mass (g)"], penguin["Comments"]
        yield {
            "individual": f"{seed}-{number}-{penguin['Individual ID']}",
            "species": penguin["Species"].split()[0] if number % 10 else None,
            "island": penguin["Island"],
            "date_egg": (date.fromisoformat(penguin["Date Egg"]) - _DAY_0).days,
            "culmen": None if length == "NA" else {"length": float(length), "depth": float(depth)},
            "body_mass": None if mass == "NA" else int(mass),
            "comments": [] if comments == "NA" else comments.split(". "),
        }
