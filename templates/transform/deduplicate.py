"""YOURS. The job's logic: here, an event that was published twice is kept once."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: A repeat is found for at least this long after the first one, by event time. Each id is kept in
#: the state that long; rows that lie further behind the newest one are left out.
WITHIN = "10 seconds"
#: How far a row may lie ahead of the batch's clock, not more than WITHIN: one wrong date in the
#: future would move the watermark there, and every right row after it would be late.
AHEAD = "5 seconds"


def transform(events: DataFrame) -> DataFrame:
    """One row per event id; the columns of QUEUE become those of OUTPUTS["output"].

    A row without an id cannot be told from another one: it passes, under an id of its own. Rows
    from the future are left out and counted in the log of each batch (``observe``).
    ``current_timestamp`` is the time in the batch's entry of the offset log, the same when the
    batch runs again.
    """
    latest = F.current_timestamp() + F.expr(f"INTERVAL {AHEAD}")
    return (
        # A column of its own, because Spark 3.5 takes no clock inside observe().
        events.withColumn("is_ahead", F.coalesce(F.col("date_time") > latest, F.lit(False)))
        .observe("left out", F.count(F.when(F.col("is_ahead"), 1)).alias("from the future"))
        .observe("passed", F.count(F.when(F.col("event_id").isNull(), 1)).alias("without an id"))
        .filter("not is_ahead")
        .withColumn("identity", F.coalesce("event_id", F.expr("uuid()")))
        .withWatermark("date_time", WITHIN)
        .dropDuplicatesWithinWatermark(["identity"])
        .select("event_id", "auction", "bidder", "price", "channel", "url", "date_time", "extra")
    )
