"""What MERGE must make of rows, in plain Python: the oracle of its tests."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from ytstream import Column

Row = Mapping[str, Any]

QUEUE = [
    Column("aircraft", "int64", required=True),
    Column("at", "int64"),
    Column("height", "double"),
    Column("note", "utf8"),
    Column("on_ground", "boolean"),
]
"""A queue of changes: positions of aircraft, some of them on the ground."""
POSITIONS = [
    Column("aircraft", "int64", key=True),
    Column("at", "int64"),
    Column("height", "double"),
    Column("note", "utf8"),
]
"""The newest position of each aircraft."""


def history(seed: int, changes: int, keys: int) -> list[dict[str, Any]]:
    """Return changes out of order: updates, deletes and re-creations, many at one time.

    Few keys have most of them. Some are there twice, and some differ only in the columns that
    decide between two of one time.
    Some updates have a delete of the same time, with lesser columns: only the flag lets it win.
    """
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = []
    while len(rows) < changes:
        row = {
            "aircraft": int(keys * chance.random() ** 3),
            "at": chance.randrange(8) if chance.random() < 0.3 else chance.randrange(1, changes),
            "height": chance.choice((None, float("nan"), -1.0, 0.5, chance.random())),
            "note": chance.choice((None, "", "é", f"{chance.randrange(99)}")),
            "on_ground": chance.choice((None, False, False, True)),
        }
        rows += [row] * (1 + (chance.random() < 0.05))
        if chance.random() < 0.1:
            rows.append({**row, "height": None, "note": None, "on_ground": not row["on_ground"]})
    return rows[:changes]


def newest_of(rows: Iterable[Row]) -> dict[int, tuple[Any, ...]]:
    """Return key -> the other columns of the rows that the table must have."""
    best: dict[int, Row] = {}
    for row in (row for row in rows if row["at"] is not None):
        known = best.get(row["aircraft"])
        if known is None or _rank(row) > _rank(known):
            best[row["aircraft"]] = row
    return {
        key: (row["at"], _shown(row["height"]), row["note"])
        for key, row in best.items()
        if not row["on_ground"]
    }


def _rank(row: Row) -> tuple[Any, ...]:
    """Return what orders the rows of a key: null is the least value, NaN the greatest."""
    if row["on_ground"]:
        return (row["at"], 1)
    height, note = row["height"], row["note"]
    high = (0, 0.0) if height is None else (2, 0.0) if height != height else (1, height)
    return (row["at"], 0, high, (0, b"") if note is None else (1, note.encode()))


def _shown(value: float | None) -> float | str | None:
    return "NaN" if value is not None and value != value else value


def stored_of(rows: Iterable[Row]) -> dict[int, tuple[Any, ...]]:
    """Return the rows of a table as newest_of() has them."""
    return {row["aircraft"]: (row["at"], _shown(row["height"]), row["note"]) for row in rows}
