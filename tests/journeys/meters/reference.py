"""A year of meters in Berlin by pandas: both changes of the clocks, and the days they make."""

from __future__ import annotations

import numpy as np
import pandas as pd

QUEUES = ("//home/grid/meters",)
METERS = 5
ZONE = "Europe/Berlin"


def frame() -> pd.DataFrame:
    """Return hourly readings of all of 2022, and the two rows that bring out the last day."""
    source = np.random.default_rng(24)
    hours = pd.date_range("2021-12-31 23:00", "2022-12-31 23:00", freq="h", tz="UTC")
    read_at = np.repeat((hours - pd.Timestamp(0, tz="UTC")) // pd.Timedelta("1us"), METERS)
    made = pd.DataFrame(
        {
            "meter": np.tile(np.arange(METERS) + 1, len(hours)),
            "read_at": pd.array(read_at, dtype="Int64"),
            "kwh": source.integers(0, 400, len(read_at)) / 100,
            "tariff": source.choice(np.array(["day", "night", None]), len(read_at)),
            "queue": 0,
        }
    )
    made.loc[made.index % 301 == 5, "read_at"] = pd.NA
    made.loc[made.index % 401 == 6, "kwh"] = -1.0
    # A year in the future: it would close all days at once.
    made.loc[made.index % 4_001 == 9, "read_at"] = 4_102_444_800_000_000
    last = made.iloc[[-1, -1]].assign(read_at=int(read_at[-1]) + 86_400_000_000, kwh=0.5)
    last["phase"] = [1, 2]
    return pd.concat([made.assign(phase=0), last], ignore_index=True)


def outputs(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the days that are over, and the reasons of the rows that are kept out."""
    reason = pd.Series(pd.NA, index=rows.index, dtype="object")
    reason[rows["kwh"] < 0] = "the meter runs backwards"
    # Of the year 2100.
    reason[(rows["read_at"] >= 4_102_444_800_000_000).fillna(False)] = "from the future"
    reason[rows["read_at"].isna()] = "without a time"
    good = rows[reason.isna()].copy()
    moments = pd.to_datetime(good["read_at"].astype("int64"), unit="us", utc=True)
    good["day"] = moments.dt.tz_convert(ZONE).dt.tz_localize(None).dt.floor("D")
    newest = moments.dt.tz_convert(ZONE).dt.tz_localize(None).max()
    good["at_night"] = good["kwh"].where(good["tariff"] == "night")
    days = good.groupby(["meter", "day"]).agg(
        readings=("kwh", "size"),
        kwh=("kwh", "sum"),
        at_night=("at_night", lambda found: found.sum(min_count=1)),
    )
    found = days.reset_index()
    over = found[found["day"] + pd.Timedelta("1D") <= newest - pd.Timedelta("3h")].copy()
    over["day"] = (over["day"] - pd.Timestamp(0)).dt.days
    # No reading at night is null here, not NaN.
    over["at_night"] = over["at_night"].astype(object).where(over["at_night"].notna(), None)
    return {"output": over, "rejected": rows.assign(reason=reason)[reason.notna()]}
