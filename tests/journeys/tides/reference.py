"""Twenty years of ten tide gauges by pandas: the rows of two queues, and the months they make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tests.journeys.tides.rows import GAUGES

QUEUES = ("//home/tides/atlantic", "//home/tides/pacific")
COUNT = 48_000


def frame() -> pd.DataFrame:
    """Return levels from June 1999 to June 2019 in the order of time, and the queue of each."""
    source = np.random.default_rng(24)
    first, last = pd.Timestamp("1999-06-01"), pd.Timestamp("2019-06-01")
    moments = np.sort(source.integers(first.value // 1_000, last.value // 1_000, COUNT))
    stations = source.choice(sorted(GAUGES), COUNT)
    level = np.round(1_200 * np.sin(moments / 7.1e9) + source.normal(0, 300, COUNT))
    made = pd.DataFrame(
        {
            "station": stations,
            "zone": [GAUGES[station] for station in stations],
            "measured": moments,
            "level_mm": pd.array(level.astype(int), dtype="Int32"),
            "queue": source.integers(0, len(QUEUES), COUNT),
        }
    )
    made.loc[made.index % 50 == 7, "level_mm"] = -32_767
    made.loc[made.index % 50 == 19, "level_mm"] = pd.NA
    made.loc[made.index % 500 == 3, "level_mm"] = 32_000
    return made


def outputs(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the output, and the reasons of the rows that are kept out."""
    level = rows["level_mm"]
    reason = pd.Series(pd.NA, index=rows.index, dtype="object")
    reason[(level.abs() > 20_000).fillna(False)] = "no such tide"
    reason[(level.isna() | (level == -32_767)).fillna(True)] = "the gauge was out of order"
    good = rows[reason.isna()].copy()
    for zone, group in good.groupby("zone"):
        local = pd.to_datetime(group["measured"], unit="us", utc=True).dt.tz_convert(zone)
        first = local.dt.tz_localize(None).dt.to_period("M").dt.to_timestamp()
        good.loc[group.index, "month"] = (first - pd.Timestamp(0)).dt.days
    months = good.groupby(["station", "month"])["level_mm"]
    figures: Any = months.agg(["count", "max", "min", "sum"]).reset_index()
    figures.columns = ["station", "month", "readings", "highest_mm", "lowest_mm", "total_mm"]
    return {
        "output": figures.astype({"month": int}),
        "rejected": rows.assign(reason=reason)[reason.notna()],
    }
