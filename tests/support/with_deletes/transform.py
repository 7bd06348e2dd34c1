"""The job of templates/merge with deletes, and with bids that come one or two batches late.

Of two bids in three, each has a key of its own: a table of few keys hides a batch that is lost. The
others contend for four keys of a minute, also with those of other batches and queues. The late
ones come after deletes that are newer.
"""

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
    """Return the bids: some of those that contend close their auction, until a newer one."""
    late = F.col("bidder") % 3
    minute = F.expr("unix_micros(date_time) div 60000000") - late
    contends = F.col("auction") % 3 == 0
    own = F.regexp_replace("event_id", "-", "").cast("bigint")
    closes = (F.col("price") % 3 == 0) & ((late == 0) | (F.col("price") == 99))
    return events.select(
        F.when(contends, minute * 4 + F.col("auction") % 4).otherwise(own).alias("auction"),
        # A late one is older than those of its minute: their deletes keep it out.
        (F.col("date_time") - F.make_dt_interval(secs=late * 61)).alias("date_time"),
        "event_id",
        "bidder",
        "price",
        "channel",
        (contends & closes).alias("is_closed"),
    )
