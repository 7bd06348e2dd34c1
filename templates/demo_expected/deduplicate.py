"""What goes in and what must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

#: The columns compared; one output row is one tuple of them.
COLUMNS = ("event_id", "auction", "bidder", "price", "channel", "url", "date_time", "extra")

#: Every so many rows one is published again, so many rows later.
EVERY = 10
LATER = 200


def expected(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    """The output rows of ``rows``: one for each event, however often it was published."""
    return Counter({_output_row(row) for row in rows})


def _output_row(row: Row) -> tuple[Any, ...]:
    return tuple(int(row[name]) if name == "date_time" else row[name] for name in COLUMNS)


def published(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as they get into a queue: their publisher sends some of them twice."""
    result: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        result.append(dict(row))
        if number >= LATER and number % EVERY == 0:
            result.append(dict(rows[number - LATER]))
    return result


def closing(_rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows to send when all are through, to bring out what still waits: nothing waits."""
    return []


def prepare(_client: Any, _settings: Any) -> None:
    """What has to be on the cluster besides the queues' rows: nothing."""
