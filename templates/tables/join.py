"""YOURS. The columns of queue, output and reference table, in the order wanted.

One entry is (name, type, required). Types are YTsaurus' names ("int64", "utf8", "timestamp", ...)
or, for lists, structs and dicts, yt.type_info types (``ti.List[ti.Utf8]``). A column that is not
required may hold null. The guarantee's own key columns are added to the output for you: leave them
out here. `make provision` creates the tables, and reports those that exist with other columns.
"""

from typing import Any

#: Bids of an auction site, as in the streaming benchmark Nexmark. All queues share these columns; a
#: queue may have more, which the job then does not see.
QUEUE: list[tuple[str, Any, bool]] = [
    ("event_id", "utf8", True),
    ("auction", "int64", True),
    ("bidder", "int64", True),
    ("price", "int64", True),  # minor units (cents) of US dollars: SPYT cannot write decimals
    ("channel", "utf8", False),
    ("url", "utf8", False),
    ("date_time", "timestamp", True),
    ("extra", "utf8", False),
]

OUTPUT: list[tuple[str, Any, bool]] = [
    ("event_id", "utf8", True),
    ("auction", "int64", True),
    ("bidder", "int64", True),
    ("price", "int64", True),
    ("category", "utf8", False),
    ("seller", "int64", False),
    ("date_time", "timestamp", True),
]

#: What is known of the auctions. A row of the output is made from one row of it at most, so the
#: columns of REFERENCE_KEY have to be its key.
REFERENCE: list[tuple[str, Any, bool]] = [
    ("auction", "int64", False),
    ("category", "utf8", False),
    ("seller", "int64", False),
]
REFERENCE_KEY = ("auction",)
