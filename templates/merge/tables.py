"""YOURS. The columns of the queue and of each output, in order.

A type is a YTsaurus name ("int64", "utf8", "any", which ``json_of`` reads, ...) or, for lists,
structs and dicts, a yt.type_info type (``ti.List[ti.Utf8]``). A column that is not required may
hold null. A table with key columns is sorted, and MERGE in transform.py says which row of a key it
has. Other tables are ordered. `make tables` shows what `make provision` creates. It alters no
existing ones.
"""

from ytstream import REJECTED, Column

#: Bids of an auction site, as in the streaming benchmark Nexmark. All queues have these columns.
#: The job ignores other columns of a queue.
QUEUE = [
    Column("event_id", "utf8", required=True),
    Column("auction", "int64", required=True),
    Column("bidder", "int64", required=True),
    # Minor units (cents) of US dollars: no output can have a decimal.
    Column("price", "int64", required=True),
    Column("channel", "utf8"),
    Column("url", "utf8"),
    Column("date_time", "timestamp", required=True),
    Column("extra", "utf8"),
]

#: The columns of each output by its name. The configuration has its path.
OUTPUTS = {
    "output": [
        # One row per auction: MERGE in transform.py says which one.
        Column("auction", "int64", key=True),
        Column("date_time", "timestamp", required=True),
        # Of two bids of one time, the greater columns win, in this order.
        Column("event_id", "utf8", required=True),
        Column("bidder", "int64", required=True),
        # Minor units.
        Column("price", "int64", required=True),
        Column("channel", "utf8"),
    ],
    # The rows that REJECT in transform.py rejects, with their position and as JSON.
    "rejected": REJECTED,
}
