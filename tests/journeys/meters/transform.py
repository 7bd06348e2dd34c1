"""YOURS. The days of each meter, from midnight to midnight in Berlin."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

ZONE = "Europe/Berlin"
WINDOW = "1 day"
LATENESS = "3 hours"
"""More than the hour by which local time goes back in October."""
REJECT = {
    "without a time": "read_at IS NULL",
    "from the future": "read_at > current_timestamp() + INTERVAL 2 hours",
    "the meter runs backwards": "kwh < 0",
}


def transform(events: DataFrame) -> DataFrame:
    """Sum up each meter's use in each day of local time."""
    return (
        events.withColumn("local", F.from_utc_timestamp("read_at", ZONE))
        .withWatermark("local", LATENESS)
        .groupBy(F.window("local", WINDOW), "meter")
        .agg(
            F.count(F.lit(1)).alias("readings"),
            F.sum("kwh").alias("kwh"),
            F.sum(F.when(F.col("tariff") == "night", F.col("kwh"))).alias("at_night"),
        )
        .select(
            "meter",
            F.to_date(F.col("window.start")).alias("day"),
            "readings",
            "kwh",
            "at_night",
        )
    )
