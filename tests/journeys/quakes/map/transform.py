"""YOURS. One earthquake in, one line of the catalogue out."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .tables import OUTPUTS

STRONG = 5.0
"""From here on an earthquake is strong."""

REJECT = {
    "the epicentre is not on Earth": "abs(epicentre.lat) > 90 OR abs(epicentre.lon) > 180",
    "nobody felt or measured it": "size(readings) = 0",
}
"""What no earthquake is."""


def transform(events: DataFrame) -> DataFrame:
    """Add what can be said of each earthquake; the columns are those of OUTPUTS["output"]."""
    length = F.length("id").cast("long")
    added = {
        "magnitude": F.col("magnitude").cast("double"),
        "magnitude_rounded": F.floor("magnitude").cast("float"),
        "is_strong": F.col("magnitude") >= STRONG,
        "kinds": F.transform("readings", lambda reading: reading["kind"]),
        "summary": F.struct(F.col("place").alias("name"), F.array(length).alias("by")),
        "raw_bytes": F.encode("raw", "UTF-8"),
        "next_day": F.date_add("day", 1),
        "region": F.trim(F.element_at(F.split("place", ","), -1)),
        "lengths": F.map_from_arrays("words", F.transform("words", F.length)),
    }
    return events.withColumns(added).select(*(column.name for column in OUTPUTS["output"]))
