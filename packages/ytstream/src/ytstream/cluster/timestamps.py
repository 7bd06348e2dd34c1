"""Timestamps of the cluster: of transactions, and of the rows that they write.

Unix seconds are their upper bits (YTsaurus documentation, "Dynamic tables: timestamps").
"""

SECONDS_BIT = 30
"""The lowest bit of the seconds."""


def unix_seconds(timestamp: int) -> int:
    """Return the second of a timestamp."""
    return timestamp >> SECONDS_BIT


def first_of(second: int) -> int:
    """Return the first timestamp of a second."""
    return second << SECONDS_BIT
