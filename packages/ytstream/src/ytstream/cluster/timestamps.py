"""Timestamps of the cluster: of transactions, and of the rows that they write.

Unix seconds are their upper bits (YTsaurus documentation, "Dynamic tables: timestamps").
"""

_SECONDS_BIT = 30


def unix_seconds(timestamp: int) -> int:
    """Return the second of a timestamp."""
    return timestamp >> _SECONDS_BIT


def first_of(second: int) -> int:
    """Return the first timestamp of a second."""
    return second << _SECONDS_BIT
