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
#: Rows that never reach transform(): reason -> a SQL condition on the columns of QUEUE. The first
#: condition that is true sends the row to the output "rejected"; null counts as false.
#: current_timestamp() is the time in the batch's entry of the offset log, the same when the batch
#: runs again. The functions try_cast and try_to_timestamp give null for a text that is not a number
#: or time; cast would end the job.
#: A regular expression is written r'...' in it, e.g. r"url RLIKE r'^https?://\S+'": without the
#: inner r, Spark's SQL removes the backslashes.
REJECT = {
    "without event time": "date_time IS NULL",
    "from the future": f"date_time > current_timestamp() + INTERVAL {AHEAD}",
}


def transform(events: DataFrame) -> DataFrame:
    """One row per auction and window; the columns are those of OUTPUTS["output"]."""
    return (
        events.withWatermark("date_time", LATENESS)
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
