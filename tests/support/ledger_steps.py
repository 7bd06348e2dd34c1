"""A ledger of many batches, written without a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.status_steps import head_of_batch, write_rows
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.ledger.ledger_rows import BatchRow, Head, Move, batch_row, head_row
from ytstream.ownership import job_marker

LAST = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
"""When the last batch of the ledgers below ended; one ended each minute before it."""


def minutes(count: float) -> datetime:
    return LAST - timedelta(minutes=count)


def write_ledger(context: JobContext, batches: int, *moves: tuple[float, Move]) -> None:
    """Write batches of ten rows of partitions 1 and 0 in turn, with moves so many minutes ago."""
    queue, ends, rows = context.settings.queues[0], {0: 0, 1: 0, 2: 0, 3: 0}, []
    for number in range(1, batches + 1):
        partition = number % 2
        first, ends[partition] = ends[partition], ends[partition] + 10
        ended = minutes(batches - number)
        done = BatchRow({queue: {partition: (first, first + 10)}}, {"output": 10}, ended, ended)
        rows.append(batch_row(Head(epoch=3, batch=number - 1, number=number), done))
    for ago, move in moves:
        ended_at = int(minutes(ago).timestamp() * 1_000_000)
        rows.append({**ledger_rows.move_row(3, move), "ended": ended_at})
    mine: dict[str, Any] = {"ends": {queue: ends}, "marker": job_marker.marker_of(context)}
    write_rows(context, *rows, head_row(head_of_batch(context, batches, **mine)))


def read_to(context: JobContext, row: int) -> None:
    ends = {context.settings.queues[0]: dict.fromkeys(range(4), row)}
    write_rows(context, head_row(head_of_batch(context, row, ends=ends)))
