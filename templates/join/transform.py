"""YOURS. The job's logic: here, a bid learns what is known of its auction."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: Bids that make no sense: reason -> a SQL condition on the columns of QUEUE. The first condition
#: that is true sends the row to the output "rejected"; null counts as false. The functions try_cast
#: and try_to_timestamp give null for a text that is not a number or time; cast would end the job.
#: A regular expression is written r'...' in it, e.g. r"url RLIKE r'^https?://\S+'": without the
#: inner r, Spark's SQL removes the backslashes.
REJECT = {
    "the price is not positive": "price <= 0",
    "the bidder is nobody": "bidder < 1",
}


def transform(events: DataFrame, reference: DataFrame) -> DataFrame:
    """One row in, one row out; the columns are those of OUTPUTS["output"].

    ``reference`` holds the rows of the reference table as they were when the query started, and is
    small enough to go to every executor (``broadcast``; SPYT's settings switch off that Spark does
    so by itself). A bid whose auction is not in it comes out with nulls.
    """
    return events.join(F.broadcast(reference), "auction", "left").select(
        "event_id", "auction", "bidder", "price", "category", "seller", "date_time"
    )
