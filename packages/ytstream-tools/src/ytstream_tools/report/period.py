"""What the ledger tells of some hours: batches, epochs, moves, and how the last process ended.

A day may have 100,000 batches, so no more than MOST of them are read. From a longer period it reads
two successive ones at a time, at equal distances: the second of the two shows what the first left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from ytstream.cluster.client import Client
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import stop_request
from ytstream.job import JobContext
from ytstream.ledger import batch_history, ledger_rows, positions
from ytstream.ledger.ledger_rows import Head

from ..status import job_status
from ..status.job_status import FinishedBatch

MOST, _REQUEST = 2_000, 500
"""Batches that are read for the curves, and rows of one request."""
LAST = 20
"""Batches of the table."""
_LOOKED_FOR = 20
"""Epochs that are looked for batch by batch where batches were left out: the last ones."""
_MOVES = 200
"""Moves that are marked."""


@dataclass(frozen=True)
class JobEvent:
    """Something that happened and is not a batch."""

    time: datetime
    kind: str
    """"epoch", "skip", "rewind" or "end"."""
    text: str


@dataclass(frozen=True)
class Period:
    """The batches and the events of a period."""

    head: Head
    batches: Sequence[FinishedBatch]
    """Those of the period that were read, in their order, and the last ones, whatever their age."""
    last: Sequence[FinishedBatch]
    count: int
    """How many batches the period has, and for how many one that was read stands."""
    weight: float
    marks: Sequence[JobEvent]
    begin: datetime
    end: datetime


def read(context: JobContext, hours: float, now: datetime) -> Period:
    """Return the hours before the last batch, and what has come since.

    Raises JobError for a ledger without a batch.
    """
    client, path = context.client, context.settings.ledger
    if not client.exists(path):
        raise JobError(
            f"the ledger {path} is missing",
            "correct `ledger`, or run `provision`",
            code=ErrorCode.NOT_PROVISIONED,
        )
    head = positions.read_head(path, client.select_rows)
    last = _batches(client, path, _newest(head, LAST))
    if head is None or not last:
        raise JobError(
            f"the ledger {path} has no batch, so there is nothing to draw",
            "start the job; `status` shows where it is",
            code=ErrorCode.NO_BATCH,
        )
    length, latest = timedelta(hours=hours), last[-1].ended
    before = batch_history.at(client, path, head, latest - length)
    first = head.number - ledger_rows.kept(head) if before is None else int(before["number"])
    numbers = range(max(1, first + 1), head.number + 1)
    step = max(1, -(-2 * len(numbers) // MOST)) if len(numbers) > MOST else 1
    wanted = [n for n in numbers if step == 1 or (head.number - n) % step < 2]
    batches = _batches(client, path, wanted)
    marks = [
        *_epochs(client, path, batches),
        *_moves(client, path, batches[0].epoch),
        *_end(context, head),
    ]
    begin = max(latest - length, batches[0].started)
    end = max(latest, min(now, latest + length), *(mark.time for mark in marks))
    return Period(
        head=head,
        batches=batches,
        last=last,
        count=len(numbers),
        weight=1.0 if step == 1 else step / 2,
        marks=sorted((mark for mark in marks if mark.time >= begin), key=lambda mark: mark.time),
        begin=begin,
        end=end,
    )


def _newest(head: Head | None, count: int) -> range:
    return range(max(1, head.number - count + 1), head.number + 1) if head is not None else range(0)


def _batches(client: Client, path: str, numbers: Sequence[int]) -> list[FinishedBatch]:
    return [
        job_status.done(row)
        for start in range(0, len(numbers), _REQUEST)
        for row in batch_history.batches(client, path, numbers[start : start + _REQUEST])
    ]


def _epochs(client: Client, path: str, batches: Sequence[FinishedBatch]) -> Iterator[JobEvent]:
    """Yield the starts between these batches, at the first batch of each."""
    changes = [(one, other) for one, other in pairwise(batches) if one.epoch != other.epoch]
    for number, (one, other) in enumerate(reversed(changes)):
        between: Sequence[FinishedBatch] = ()
        if number < _LOOKED_FOR:
            between = _batches(client, path, range(one.number + 1, other.number))
        for before, after in pairwise([one, *between, other]):
            if before.epoch != after.epoch:
                starts = after.epoch - before.epoch
                without = f", {starts - 1} of {starts} starts had no batch" if starts > 1 else ""
                yield JobEvent(after.started, "epoch", f"epoch {after.epoch}{without}")


def _moves(client: Client, path: str, epoch: int) -> Iterator[JobEvent]:
    query = f"{ledger_rows.moves_query(path)} and number >= {epoch} limit {_MOVES}"
    for row in client.select_rows(query):
        pairs = [pair for rows in ledger_rows.moved_of(row).values() for pair in rows.values()]
        text = {"skip": "trimmed rows were skipped", "rewind": "rewind"}[str(row["kind"])]
        forward = sum(max(0, now - was) for was, now in pairs)
        back = sum(max(0, was - now) for was, now in pairs)
        yield JobEvent(
            ledger_rows.time_of(row["ended"]), str(row["kind"]),
            f"{text}: {forward} rows forward, {back} back",
        )  # fmt: skip


def _end(context: JobContext, head: Head) -> Iterator[JobEvent]:
    """Yield how the process of the last epoch has ended, if it has said so."""
    for row in context.client.select_rows(ledger_rows.end_query(context.settings.ledger)):
        ended = ledger_rows.end_of(row)
        if ended.epoch == head.epoch:
            how = ended.how.removeprefix(stop_request.FAILED_PREFIX)
            yield JobEvent(ledger_rows.time_of(ended.ended), "end", f"the job ended: {how}")
