"""YOURS. The job's logic: here, the newest bid of each auction."""

from pyspark.sql import DataFrame

from ytstream import newest

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


#: How rows change the table: a bid replaces the one of its auction if it is newer, in whatever
#: order bids come. For a boolean column of the rows that removes the row of the key, add
#: apply_as_deletes="...". Instead of newest(), a function may decide: see docs/operations.md.
MERGE = {"output": newest(sequence_by="date_time")}


def transform(events: DataFrame) -> DataFrame:
    """Bids, with the columns of OUTPUTS. Do not drop older ones: MERGE does."""
    return events.select("auction", "date_time", "event_id", "bidder", "price", "channel")
