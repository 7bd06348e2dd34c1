"""YOURS. The last earthquake of each place, as long as it was a strong one."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ytstream import newest

REJECT = {"too weak": "magnitude < 4.1"}
MERGE = {"output": newest(sequence_by="time", apply_as_deletes="is_over")}


def transform(events: DataFrame) -> DataFrame:
    """Earthquakes. A moderate one says that the strong one before it is over."""
    is_over = (F.col("magnitude") < 4.5).alias("is_over")
    return events.select("place", "time", "id", "magnitude", "depth", is_over)
