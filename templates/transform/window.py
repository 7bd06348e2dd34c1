"""YOURS. The job's logic: here, bids and their sum per auction and ten seconds."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: The length of a window; windows follow each other without a gap and without overlap.
WINDOW = "10 seconds"
#: How far a row may lie behind the newest one. A window is written, once, when the watermark (the
#: newest event time less this) has passed its end; rows that come after that are left out.
LATENESS = "10 seconds"
#: How far a row may lie ahead of the batch's clock, not more than LATENESS: one wrong date in the
#: future would move the watermark there, and every right row after it would be late.
AHEAD = "5 seconds"


def transform(events: DataFrame) -> DataFrame:
    """One row per auction and window; the columns are those of OUTPUTS["output"].

    Rows without an event time belong to no window. They and those from the future are counted in
    the log of each batch (``observe``). ``current_timestamp`` is the time in the batch's entry of
    the offset log, the same when the batch runs again.
    """
    time = F.col("date_time")
    latest = F.current_timestamp() + F.expr(f"INTERVAL {AHEAD}")
    return (
        # A column of its own, because Spark 3.5 takes no clock inside observe().
        events.withColumn("is_ahead", F.coalesce(time > latest, F.lit(False)))
        .observe(
            "left out",
            F.count(F.when(time.isNull(), 1)).alias("without event time"),
            F.count(F.when(F.col("is_ahead"), 1)).alias("from the future"),
        )
        .filter("not is_ahead")
        .withWatermark("date_time", LATENESS)
        .groupBy(F.window("date_time", WINDOW), "auction")
        .agg(F.count(F.lit(1)).alias("bids"), F.sum("price").alias("total"))
        .select(
            "auction",
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            "bids",
            "total",
        )
    )
