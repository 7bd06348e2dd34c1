"""YOURS. The job's logic: here, a bid learns what is known of its auction."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: Invalid bids: a SQL condition on the columns of QUEUE for each reason. The first condition that
#: is true sends the row to the output "rejected". Null counts as false. Use try_cast and
#: try_to_timestamp for a text that may not be a number or a time: cast would end the job. Write a
#: regular expression as r'...', such as r"url RLIKE r'^https?://\S+'". Without the inner r, Spark's
#: SQL removes the backslashes.
REJECT = {
    "the price is not positive": "price <= 0",
    "the bidder is nobody": "bidder < 1",
}


def transform(events: DataFrame, reference: DataFrame) -> DataFrame:
    """One row in, one row out; the columns are those of OUTPUTS["output"].

    ``reference`` holds the rows of the reference table as they were when the query started, and is
    small enough to go to every executor (``broadcast``; SPYT's settings switch off Spark's own
    decision to do so). A bid whose auction is not in it comes out with nulls.
    """
    return events.join(F.broadcast(reference), "auction", "left").select(
        "event_id", "auction", "bidder", "price", "category", "seller", "date_time"
    )
