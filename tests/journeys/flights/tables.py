"""The columns of departures and of what the job makes of them."""

from __future__ import annotations

from typing import Any

#: One planned departure from New York. What is not required is null for flights that were cancelled
#: or diverted.
QUEUE: list[tuple[str, Any, bool]] = [
    ("time_hour", "timestamp", True),  # the hour of the scheduled departure
    ("minute", "int32", True),  # the minute within it
    ("carrier", "utf8", True),
    ("flight", "int64", True),
    ("tailnum", "utf8", False),
    ("origin", "utf8", True),
    ("dest", "utf8", True),
    ("dep_delay", "int64", False),  # minutes, negative when early
    ("arr_delay", "int64", False),  # minutes
    ("air_time", "double", False),  # minutes
]

OUTPUT: list[tuple[str, Any, bool]] = [
    ("scheduled", "timestamp", True),
    ("carrier", "utf8", True),
    ("flight", "int64", True),
    ("tailnum", "utf8", False),
    ("origin", "utf8", True),
    ("dest", "utf8", True),
    ("delay_hours", "double", False),  # null: it never departed
    ("arr_delay", "int64", False),
    ("air_time", "double", False),
]
