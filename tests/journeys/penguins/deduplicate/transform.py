"""YOURS. A penguin is kept once in each season."""

from pyspark.sql import DataFrame

#: A second report comes within this time.
WITHIN = "1 minute"


def transform(events: DataFrame) -> DataFrame:
    """Keep the first report of each penguin and season."""
    rows = events.withWatermark("reported", WITHIN)
    return rows.dropDuplicatesWithinWatermark(["individual", "season"])
