"""YOURS. A penguin is kept once in each season."""

from pyspark.sql import DataFrame

WITHIN = "1 minute"
"""A second report comes within this time."""
REJECT = {
    "without a time": "reported IS NULL",
    "from the future": "reported > current_timestamp() + INTERVAL 30 seconds",
}


def transform(events: DataFrame) -> DataFrame:
    """Keep the first report of each penguin and season."""
    rows = events.withWatermark("reported", WITHIN)
    return rows.dropDuplicatesWithinWatermark(["individual", "season"])
