"""The queue of a sample row, which the job adds to rows of several queues as `queue_id`.

An output may have a column that is made of it, so the expected rows must know it as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

QUEUE_ID = "queue_id"
Rows = Sequence[Mapping[str, Any]]


def of(rows: Rows, queue: str, queues: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows that were sent to a queue, with its path where there are several queues."""
    place = {QUEUE_ID: queue} if len(queues) > 1 else {}
    return [{**row, **place} for row in rows]


def dealt(rows: Rows, queues: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows that no queue has, dealt out over the queues in turn."""
    return [of([row], queues[n % len(queues)], queues)[0] for n, row in enumerate(rows)]


def bare(rows: Rows, queues: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows as a queue has them."""
    dropped = QUEUE_ID if len(queues) > 1 else None
    return [{name: row[name] for name in row if name != dropped} for row in rows]
