"""The job of templates/merge with deletes, and with bids that come one or two batches late."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ytstream import newest

REJECT = {
    "the price is not positive": "price <= 0",
    "the URL is of another auction": (
        "try_cast(regexp_extract(url, '([0-9]+)[?]', 1) AS BIGINT) <> auction"
    ),
}
MERGE = {"output": newest(sequence_by="date_time", apply_as_deletes="is_closed")}


def transform(events: DataFrame) -> DataFrame:
    """Return the bids: one in three closes its auction, until a newer one."""
    late = F.make_dt_interval(mins=(F.col("bidder") % 3).cast("int"))
    return events.select(
        (F.col("auction") % 20).alias("auction"),
        (F.col("date_time") - late).alias("date_time"),
        "event_id",
        "bidder",
        "price",
        "channel",
        (F.col("price") % 3 == 0).alias("is_closed"),
    )
