"""YOURS. Sample rows: the penguins of penguins-raw.csv, over and over, some reported twice."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("penguins-raw.csv")
_PENGUINS = [*csv.DictReader(_FILE.read_text(encoding="utf-8").splitlines())]
_DAY_0 = date(1970, 1, 1)
_ISOTOPES = {"N": "Delta 15 N (o/oo)", "C": "Delta 13 C (o/oo)"}

EVENT_TIME = "reported"


def rows(count: int, seed: int, start_us: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` penguins, 10 ms apart from ``start_us``, every fifth of them twice.

    The second report is the first one again, so it does not matter which of them is kept.
    """
    for number in range(count):
        penguin = _PENGUINS[(seed + number) % len(_PENGUINS)]
        row = _row(f"{seed}-{number}", penguin, start_us + (number + 1) * 10_000)
        yield row
        if number % 5 == 0:
            yield row


def _row(name: str, penguin: dict[str, str], now: int) -> dict[str, Any]:
    egg = date.fromisoformat(penguin["Date Egg"])
    measured = {name: penguin[column] for name, column in _ISOTOPES.items()}
    return {
        "individual": f"{penguin['Individual ID']}-{name}",
        "season": egg.year,
        "reported": now,
        "date_egg": (egg - _DAY_0).days,
        "isotopes": [[name, float(text)] for name, text in measured.items() if text != "NA"],
        "is_female": {"FEMALE": True, "MALE": False}.get(penguin["Sex"]),
        "flipper": None
        if penguin["Flipper Length (mm)"] == "NA"
        else float(penguin["Flipper Length (mm)"]),
    }
