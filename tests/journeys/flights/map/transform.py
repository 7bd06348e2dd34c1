"""Departures with their delay in hours and a clean carrier."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def transform(events: DataFrame) -> DataFrame:
    """Return a row for each row; a flight that never departed has null delays."""
    scheduled = F.col("time_hour") + F.make_dt_interval(mins=F.col("minute"))
    return events.select(
        scheduled.alias("scheduled"),
        F.upper(F.trim("carrier")).alias("carrier"),
        "flight",
        "tailnum",
        "origin",
        "dest",
        (F.col("dep_delay") / 60).alias("delay_hours"),
        "arr_delay",
        "air_time",
    )
