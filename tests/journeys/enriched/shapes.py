"""Two shapes of public pipelines: their rows, their references, and what pandas makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pandas as pd

Row = dict[str, Any]

_WORDS = (
    "Zürich", "Нижний Тагил", "Θεσσαλονίκη", "القاهرة", "ירושלים", "वाराणसी", "กรุงเทพ",
    "重慶市", "부산광역시", "なら", "𐌰𐌹𐌽𐍃", "\U0001f5fc", "e\u0301", "",
)  # fmt: skip
"""Latin, Cyrillic, Greek, Arabic, Hebrew, Devanagari, Thai, Han, Hangul, Kana, and beyond 16 bits.
"""
_WIKIS = ("dewiki", "enwiki", "ruwiki", "zhwiki", "arwiki", "commons")
TITLES, AIRCRAFT = 1_000_000, 500_000


@dataclass(frozen=True)
class Shape:
    """A stream and the reference that it is joined with."""

    reference: str
    key: tuple[str, ...]
    schema: tuple[tuple[str, str], ...]
    """Of the static table, in an order that is not the key's."""
    rows_of_reference: Callable[[], Iterator[Row]]
    rows: Callable[[int], list[Row]]
    joined: Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


def _title(page: int) -> Row:
    has_place = page % 5 != 0
    return {
        "page": page,
        "title": f"{_WORDS[page % len(_WORDS)]} {page // 3}",
        "wiki": _WIKIS[page % len(_WIKIS)],
        "lat": page % 180 - 90.25 if has_place else None,
        "lon": page % 360 - 180.5 if has_place else None,
    }


def _edit(edit: int, random: Random) -> Row:
    """Return an edit: of each six one is of an unknown page, of each hundred one names none."""
    named = _title(random.randrange(TITLES * 6 // 5))
    title = None if edit % 100 == 7 else named["title"]
    return {"edit": edit, "wiki": named["wiki"], "title": title, "user": f"Ünäme {edit % 50}"}


def _with_page(edits: pd.DataFrame, titles: pd.DataFrame) -> pd.DataFrame:
    made = edits.merge(titles, on=["wiki", "title"], how="left", indicator="is_known")
    made["is_known"] = made["is_known"] == "both"
    return made


def _aircraft(number: int) -> Row:
    return {
        "model": f"A{number % 400}", "built": 1950 + number % 75, "operator": f"Авиа {number % 97}",
        "icao24": f"{number * 33 % (1 << 24):06x}",
    }  # fmt: skip


def _position(position: int, random: Random) -> Row:
    number = random.randrange(AIRCRAFT * 11 // 10)
    icao24 = None if position % 100 == 3 else f"{number * 33 % (1 << 24):06x}"
    return {"position": position, "icao24": icao24, "altitude": random.uniform(0, 12_000)}


def _registered(positions: pd.DataFrame, register: pd.DataFrame) -> pd.DataFrame:
    named = positions[positions["icao24"].notna()]
    return named.merge(register, on="icao24", how="inner").drop(columns="model")


def _made(one: Callable[[int, Random], Row]) -> Callable[[int], list[Row]]:
    def rows(count: int) -> list[Row]:
        random = Random(63)
        return [one(number, random) for number in range(count)]

    return rows


SHAPES = {
    "edits": Shape(
        "titles", ("wiki", "title"),
        (("page", "int64"), ("title", "utf8"), ("wiki", "utf8"), ("lat", "double"),
         ("lon", "double")),
        lambda: map(_title, range(TITLES)), _made(_edit), _with_page,
    ),
    "positions": Shape(
        "register", ("icao24",),
        (("model", "utf8"), ("built", "int64"), ("operator", "utf8"), ("icao24", "string")),
        lambda: map(_aircraft, range(AIRCRAFT)), _made(_position), _registered,
    ),
}  # fmt: skip


@cache
def _reference(shape: Shape) -> pd.DataFrame:
    return pd.DataFrame(shape.rows_of_reference())


def expected(shape: Shape, rows: list[Row]) -> list[Row]:
    """Return what pandas makes of the rows, with None where it has NaN."""
    made = shape.joined(pd.DataFrame(rows), _reference(shape))
    columns = {name: made[name].astype(object).where(made[name].notna(), None) for name in made}
    whole = {"page", "built", "edit", "position"}
    return [
        {
            name: int(value) if name in whole and value is not None else value
            for name, value in zip(columns, values, strict=True)
        }
        for values in zip(*columns.values(), strict=True)
    ]
