"""YOURS. The columns of the queue and of the output table, in the order wanted.

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
    ("auction", "int64", True),
    ("window_start", "timestamp", True),
    ("window_end", "timestamp", True),  # the first moment after the window
    ("bids", "int64", True),
    ("total", "int64", True),  # of their prices, minor units
]
