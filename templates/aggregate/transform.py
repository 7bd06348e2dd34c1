"""YOURS. The job's logic: here, running totals of the bids of each auction."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: Bids that make no sense: reason -> a SQL condition on the columns of QUEUE. The first condition
#: that is true sends the row to the output "rejected"; null counts as false. The functions try_cast
#: and try_to_timestamp give null for a text that is not a number or time; cast would end the job.
#: A regular expression is written r'...' in it, e.g. r"url RLIKE r'^https?://\S+'": without the
#: inner r, Spark's SQL removes the backslashes.
REJECT = {
    "the price is not positive": "price <= 0",
    "the URL is of another auction": (
        "try_cast(regexp_extract(url, '([0-9]+)[?]', 1) AS BIGINT) <> auction"
    ),
}


def transform(events: DataFrame) -> DataFrame:
    """One row per auction, given again whenever it changes; the columns are those of OUTPUTS.

    The groups must be those of the output's key. The state keeps a row for each group for ever:
    group by something whose values are bounded.
    """
    return events.groupBy("auction").agg(
        F.count(F.lit(1)).alias("bids"),
        F.sum("price").alias("total"),
        F.max("price").alias("highest"),
    )
