"""YOURS. The months of each tide gauge, by the clock on its pier."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REJECT = {
    "the gauge was out of order": "level_mm IS NULL OR level_mm = -32767",
    "no such tide": "abs(level_mm) > 20000",
}


def transform(events: DataFrame) -> DataFrame:
    """Keep the running figures of each gauge and month of local time."""
    month = F.trunc(F.from_utc_timestamp("measured", F.col("zone")), "MM")
    return events.groupBy("station", month.alias("month")).agg(
        F.count(F.lit(1)).alias("readings"),
        F.max("level_mm").alias("highest_mm"),
        F.min("level_mm").alias("lowest_mm"),
        F.sum("level_mm").alias("total_mm"),
    )
