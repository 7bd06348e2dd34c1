"""YOURS. Earthquakes per minute and class of depth."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

WINDOW = "1 minute"
LATENESS = "30 seconds"
REJECT = {
    "without a time": "time IS NULL",
    "from the future": "time > current_timestamp() + INTERVAL 30 seconds",
}


def transform(events: DataFrame) -> DataFrame:
    """Count each minute's earthquakes, and find the strongest one and the mean depth."""
    return (
        events.withWatermark("time", LATENESS)
        .groupBy(F.window("time", WINDOW), "depth_class")
        .agg(
            F.count(F.lit(1)).alias("quakes"),
            F.max("magnitude").alias("strongest"),
            F.avg("depth").alias("mean_depth"),
        )
        .select(
            "depth_class",
            F.col("window.start").alias("minute"),
            "quakes",
            "strongest",
            "mean_depth",
        )
    )
