"""When the oldest rows of batches were written: the ledger does not say it, the queues may."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from yt.common import YtError

from ytstream.cluster.client import Client
from ytstream.cluster.timestamps import unix_seconds
from ytstream.ledger.row_timestamps import row_timestamps

from ..status.job_status import FinishedBatch

_MOST, _REQUEST = 96, 500
"""Batches that are asked about, and rows of one request."""


def written(client: Client, batches: Sequence[FinishedBatch]) -> Mapping[int, datetime]:
    """Return number -> time for some of the batches, at equal distances.

    Skips batches whose rows are trimmed, and those of a queue whose rows have no times.
    """
    step = max(1, -(-len(batches) // _MOST))
    chosen, found = [*batches[::-step]], dict[int, datetime]()
    for queue in dict.fromkeys(path for batch in chosen for path in batch.ranges):
        firsts = {
            (partition, first): batch.number
            for batch in chosen
            for partition, (first, _) in batch.ranges.get(queue, {}).items()
        }
        for position, time in _times(client, queue, [*firsts]).items():
            number = firsts[position]
            found[number] = min(time, found.get(number, time))
    return found


def _times(
    client: Client, queue: str, rows: Sequence[tuple[int, int]]
) -> Mapping[tuple[int, int], datetime]:
    found: dict[tuple[int, int], int | None] = {}
    with suppress(YtError, OSError):  # the page is about the ledger, and says less without this
        for start in range(0, len(rows), _REQUEST):
            found |= row_timestamps(client, queue, rows[start : start + _REQUEST]) or {}
    return {
        position: datetime.fromtimestamp(unix_seconds(time), UTC)
        for position, time in found.items()
        if time is not None
    }
