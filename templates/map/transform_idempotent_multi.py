"""YOURS. The job's logic: here, dollars become euros (Nexmark query 1)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: Euros per thousand dollars: whole numbers, so that every run gives the same cents.
EUR_PER_1000_USD = 908

#: Invalid bids: a SQL condition on the columns of QUEUE for each reason. The first condition that
#: is true sends the row to the output "rejected". Null counts as false. Use try_cast and
#: try_to_timestamp for a text that may not be a number or a time: cast would end the job. Write a
#: regular expression as r'...', such as r"url RLIKE r'^https?://\S+'". Without the inner r, Spark's
#: SQL removes the backslashes.
REJECT = {
    "the price is not positive": "price <= 0",
    "the URL is of another auction": (
        "try_cast(regexp_extract(url, '([0-9]+)[?]', 1) AS BIGINT) <> auction"
    ),
}


def transform(events: DataFrame) -> DataFrame:
    """One row in, one row out; the columns of QUEUE become those of OUTPUTS["output"].

    The key columns must come out as they went in.
    """
    price_eur = F.expr(f"price * {EUR_PER_1000_USD} div 1000")
    return events.select(
        "queue_id",
        "tablet_index",
        "row_index",
        "event_id",
        "auction",
        "bidder",
        price_eur.alias("price_eur"),
        "channel",
        "url",
        "date_time",
        "extra",
    )
