"""YOURS. The job's logic: here, bids and their sum per auction and ten seconds."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: The length of a window. Windows have no gaps and do not overlap.
WINDOW = "10 seconds"
#: How far a row may be behind the newest one. A window is written once, when the watermark (the
#: newest event time minus this) has passed its end. Rows that come later are skipped.
LATENESS = "10 seconds"
#: How far a row may be ahead of the batch's clock, at most LATENESS. Otherwise one wrong date in
#: the future would move the watermark, and every correct row after it would be late.
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
