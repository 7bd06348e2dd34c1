"""The delays of each carrier so far."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REJECT = {"never departed": "dep_delay IS NULL"}


def transform(events: DataFrame) -> DataFrame:
    """Return the totals of each carrier."""
    return events.groupBy(F.upper(F.trim("carrier")).alias("carrier")).agg(
        F.count(F.lit(1)).alias("departures"),
        F.sum("dep_delay").alias("total_delay"),
        F.max("dep_delay").alias("greatest_delay"),
    )
