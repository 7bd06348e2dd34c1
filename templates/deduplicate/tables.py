"""YOURS. The columns of the queue and of each output, in the order wanted.

Types are YTsaurus' names ("int64", "utf8", "timestamp", ...) or, for lists, structs and dicts,
yt.type_info types (``ti.List[ti.Utf8]``). A column that is not required may hold null. A table with
key columns is sorted by them, and rows replace each other by key; a table without is ordered.
`make tables` shows the tables that `make provision` creates; existing ones are never altered.
"""

from ytstream import REJECTED, Column

#: Bids of an auction site, as in the streaming benchmark Nexmark. All queues share these columns; a
#: queue may have more, which the job then does not see.
QUEUE = [
    Column("event_id", "utf8", required=True),
    Column("auction", "int64", required=True),
    Column("bidder", "int64", required=True),
    # Minor units (cents) of US dollars: SPYT cannot write decimals.
    Column("price", "int64", required=True),
    Column("channel", "utf8"),
    Column("url", "utf8"),
    Column("date_time", "timestamp", required=True),
    Column("extra", "utf8"),
]

#: By name of the output; the configuration says where each of them is.
OUTPUTS = {
    "output": [
        Column("event_id", "utf8", required=True),
        Column("auction", "int64", required=True),
        Column("bidder", "int64", required=True),
        Column("price", "int64", required=True),
        Column("channel", "utf8"),
        Column("url", "utf8"),
        Column("date_time", "timestamp", required=True),
        Column("extra", "utf8"),
    ],
    # The rows that REJECT of transform.py keeps out, with their position and as JSON.
    "rejected": REJECTED,
}
