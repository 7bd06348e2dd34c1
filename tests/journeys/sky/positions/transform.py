"""One batch, three tables: one grows, one is kept up to date, and rows leave one."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ytstream import newest

MERGE = {
    "current": newest(sequence_by="at"),
    "on_ground_now": newest(sequence_by="at", apply_as_deletes="is_flying"),
}


def transform(events: DataFrame) -> DataFrame:
    """Return the positions as they are."""
    return events.select("icao24", "at", "altitude", "on_ground")


def outputs(rows: DataFrame) -> dict[str, DataFrame]:
    """Return all positions for each table: MERGE says which of them change it."""
    is_flying = (~F.col("on_ground")).alias("is_flying")
    return {
        "output": rows,
        "current": rows,
        "on_ground_now": rows.select("icao24", "at", "altitude", is_flying),
    }
