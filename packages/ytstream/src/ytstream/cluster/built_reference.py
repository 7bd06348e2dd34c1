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
"""The attribute that a table has from its creation on: a map of the keys below."""
SOURCE, KEY = "source", "key"
"""Keys of MARK: the path of the static table, and the key columns."""
TIMESTAMP = "timestamp"
"""Key of MARK: a timestamp of the cluster's at which all rows were there. An unfinished table has
none."""
UNUSED = "unused"
"""Key of MARK: a timestamp of the cluster's at which no link led to the table any more."""
SWITCHED = "ytstream_reference_switched"
"""The attribute of a link that `make reference` has switched, and nobody after it by hand."""
ASKED = (MARK, "creation_time", "tablet_state")
"""The attributes that `earliest` and `is_frozen` need."""


def mark(timestamp: int, source: str, key: tuple[str, ...]) -> dict[str, Any]:
    """Return the value of MARK."""
    return {TIMESTAMP: timestamp, **begun(source, key)}


def earliest(found: Mapping[str, Any]) -> int:
    """Return the first timestamp at which a lookup finds the table's rows.

    Of a table that `make reference` has not built, the time of its creation, rounded up.
    """
    if is_finished(found):
        return int(found[MARK][TIMESTAMP])
    return end_of(str(found["creation_time"]))


def end_of(time: str) -> int:
    """Return the timestamp of the cluster's at which the second of a node's time is over."""
    second = int(datetime.fromisoformat(time).astimezone(UTC).timestamp())
    return timestamps.first_of(second + 1)


def is_frozen(found: Mapping[str, Any]) -> bool:
    """Return whether `make reference` has built the table and nobody has written to it since."""
    return is_finished(found) and str(found.get("tablet_state")) == "frozen"


def is_finished(found: Mapping[str, Any]) -> bool:
    """Return whether `make reference` has built the table, to its end."""
    return TIMESTAMP in found.get(MARK, {})


def begun(source: str, key: tuple[str, ...]) -> dict[str, Any]:
    """Return the value of MARK of a table that is being built."""
    return {SOURCE: source, KEY: [*key]}


def finish(client: Client, table: str, source: str, key: tuple[str, ...]) -> None:
    """Mark a table whose rows are all there."""
    client.set(f"{table}/@{MARK}", mark(int(client.generate_timestamp()), source, key))
