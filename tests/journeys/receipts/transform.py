"""YOURS. Each receipt once: for the dashboards, for the archive, and the returns by themselves."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

WITHIN = "2 days"
"""A till sends a receipt again within this time, or not at all."""
REJECT = {
    "from the future": "sold_at > current_timestamp() + INTERVAL 10 minutes",
    "nothing was sold": "size(items) = 0",
}


def transform(events: DataFrame) -> DataFrame:
    """Keep the first of equal receipts."""
    return events.withWatermark("sold_at", WITHIN).dropDuplicatesWithinWatermark(
        ["store", "receipt"]
    )


def outputs(rows: DataFrame) -> dict[str, DataFrame]:
    """Return the rows of each output."""
    pieces = F.aggregate("items", F.lit(0), lambda sum_, item: sum_ + item["pieces"])
    day = F.to_date(F.from_utc_timestamp("sold_at", "Asia/Yekaterinburg"))
    return {
        "output": rows.select("receipt", "store", "sold_at", "cents", pieces.alias("pieces")),
        "archive": rows.select(day.alias("day"), "receipt", "store", "cents", "items", "customer"),
        "returns": rows.filter("cents < 0").select("receipt", "cents"),
    }
