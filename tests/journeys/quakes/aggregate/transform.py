"""YOURS. All earthquakes so far, by class of depth."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REJECT = {"too weak": "magnitude < 4.1"}


def transform(events: DataFrame) -> DataFrame:
    """Count the earthquakes of a class, and keep the strongest and the deepest."""
    return events.groupBy("depth_class").agg(
        F.count(F.lit(1)).alias("quakes"),
        F.max("magnitude").alias("strongest"),
        F.max("depth").alias("deepest"),
    )
