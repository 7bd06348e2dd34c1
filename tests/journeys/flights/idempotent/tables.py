"""The columns of departures and of what the job makes of them."""

from __future__ import annotations

from ytstream import REJECTED, Column

QUEUE = [
    Column("time_hour", "timestamp", required=True),  # the hour of the scheduled departure
    Column("minute", "int32", required=True),  # the minute within it
    Column("carrier", "utf8", required=True),
    Column("flight", "int64", required=True),
    Column("tailnum", "utf8"),
    Column("origin", "utf8", required=True),
    Column("dest", "utf8", required=True),
    Column("dep_time", "int64"),  # by the clock: 1745 is 17:45
    Column("arr_time", "int64"),
    Column("dep_delay", "int64"),  # minutes, negative when early
    Column("arr_delay", "int64"),  # minutes
    Column("air_time", "double"),  # minutes
]
"""One planned departure from New York. What is not required is null for flights that were cancelled
or diverted."""

OUTPUTS = {
    "output": [
        Column("tablet_index", "int64", key=True),
        Column("row_index", "int64", key=True),
        Column("scheduled", "timestamp", required=True),
        Column("carrier", "utf8", required=True),
        Column("flight", "int64", required=True),
        Column("tailnum", "utf8"),
        Column("origin", "utf8", required=True),
        Column("dest", "utf8", required=True),
        Column("delay_hours", "double", required=True),
        Column("arr_delay", "int64"),
        Column("air_time", "double"),
    ],
    # Those that departed late.
    "delayed": [
        Column("tablet_index", "int64", key=True),
        Column("row_index", "int64", key=True),
        Column("scheduled", "timestamp", required=True),
        Column("carrier", "utf8", required=True),
        Column("flight", "int64", required=True),
        Column("delay_hours", "double", required=True),
    ],
    "rejected": REJECTED,
}
