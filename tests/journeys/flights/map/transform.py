"""Departures with their delay in hours and a clean carrier; the cancelled ones are rejected."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REJECT = {
    "never departed": "dep_time IS NULL",
    "departed, but never arrived": "arr_time IS NULL",
}
"""A flight that never departed has no time of arrival either: the first reason counts."""


def transform(events: DataFrame) -> DataFrame:
    """Return a row for each flight that arrived somewhere."""
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


def outputs(rows: DataFrame) -> dict[str, DataFrame]:
    """Return all flights, and those that departed an hour late or later."""
    delayed = rows.filter("delay_hours >= 1")
    return {
        "output": rows,
        "delayed": delayed.select("scheduled", "carrier", "flight", "delay_hours"),
    }
