"""YOURS. The job's logic: here, an event that was published twice is kept once."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: A repeat is found for at least this long after the first one, by event time. The state keeps each
#: id that long. Rows further behind the newest one are skipped.
WITHIN = "10 seconds"
#: How far a row may be ahead of the batch's clock, at most WITHIN. Otherwise one wrong date in the
#: future would move the watermark, and every correct row after it would be late.
AHEAD = "5 seconds"
#: Rows that never reach transform(): a SQL condition on the columns of QUEUE for each reason. The
#: first condition that is true sends the row to the output "rejected". Null counts as false.
#: current_timestamp() is the batch's time in the offset log, and stays the same when the batch runs
#: again. Use try_cast and try_to_timestamp for a text that may not be a number or a time: cast
#: would end the job. Write a regular expression as r'...', such as r"url RLIKE r'^https?://\S+'".
#: Without the inner r, Spark's SQL removes the backslashes.
REJECT = {
    "without event time": "date_time IS NULL",
    "from the future": f"date_time > current_timestamp() + INTERVAL {AHEAD}",
}


def transform(events: DataFrame) -> DataFrame:
    """One row per event id; the columns of QUEUE become those of OUTPUTS["output"].

    A row without an id cannot be told from another one: it passes, under an id of its own, and the
    log of each batch counts it (``observe``).
    """
    nameless = F.count(F.when(F.col("event_id").isNull(), 1)).alias("without an id")
    return (
        events.observe("passed", nameless)
        .withColumn("identity", F.coalesce("event_id", F.expr("uuid()")))
        .withWatermark("date_time", WITHIN)
        .dropDuplicatesWithinWatermark(["identity"])
        .select("event_id", "auction", "bidder", "price", "channel", "url", "date_time", "extra")
    )
