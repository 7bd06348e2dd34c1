"""What `make reference` leaves on a table that it has built, for the jobs that look keys up in it.

A table that was static has rows with the times at which its chunks were written. A lookup at an
earlier time finds nothing, and no error (YTsaurus, test_versioned_lookup.py,
test_versioned_lookup_early_timestamp_after_alter). So a batch that began before the table was
finished must not use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from . import timestamps
from .client import Client

MARK = "ytstream_reference"
"""The attribute of a finished table: a map of the keys below."""
TIMESTAMP, SOURCE, KEY = "timestamp", "source", "key"
"""Keys of MARK: a timestamp of the cluster's at which all rows were there, the path of the static
table, and the key columns."""
ASKED = (MARK, "creation_time", "tablet_state")
"""The attributes that `earliest` and `is_frozen` need."""


def mark(timestamp: int, source: str, key: tuple[str, ...]) -> dict[str, Any]:
    """Return the value of MARK."""
    return {TIMESTAMP: timestamp, SOURCE: source, KEY: [*key]}


def earliest(found: Mapping[str, Any]) -> int:
    """Return the first timestamp at which a lookup finds the table's rows.

    Of a table that `make reference` has not built, the time of its creation, rounded up.
    """
    if built := found.get(MARK):
        return int(built[TIMESTAMP])
    return end_of(str(found["creation_time"]))


def end_of(time: str) -> int:
    """Return the timestamp of the cluster's at which the second of a node's time is over."""
    second = int(datetime.fromisoformat(time).astimezone(UTC).timestamp())
    return timestamps.first_of(second + 1)


def is_frozen(found: Mapping[str, Any]) -> bool:
    """Return whether `make reference` has built the table and nobody has written to it since."""
    return MARK in found and str(found.get("tablet_state")) == "frozen"


def finish(client: Client, table: str, source: str, key: tuple[str, ...]) -> None:
    """Mark a table whose rows are all there."""
    client.set(f"{table}/@{MARK}", mark(int(client.generate_timestamp()), source, key))
