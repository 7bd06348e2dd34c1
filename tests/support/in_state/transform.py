"""YOURS. The job's logic: here, running totals of the bids of each auction."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REJECT = {
    "the price is not positive": "price <= 0",
    "the URL is of another auction": (
        "try_cast(regexp_extract(url, '([0-9]+)[?]', 1) AS BIGINT) <> auction"
    ),
}
r"""Invalid bids: a SQL condition on the columns of QUEUE for each reason. The first condition that
is true sends the row to the output "rejected". Null counts as false. Use try_cast and
try_to_timestamp for a text that may not be a number or a time: cast would end the job. Write a
regular expression as r'...', such as r"url RLIKE r'^https?://\S+'". Without the inner r, Spark's
SQL removes the backslashes."""


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
