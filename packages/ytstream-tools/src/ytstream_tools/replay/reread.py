"""Whether a rejected row may be replayed: rows that a `rewind` goes back over are read again.

A row that REJECT accepts when it is read again stays in `rejected`, though it is in the outputs. It
has the time of the batch that rejected it. So it is still rejected only if the last batch that has
read its position was at work at that time. A row that the job has yet to read is not replayed
either. Nor is a row of a partition that a reshard has removed, if a rewind came later: its rows
have other numbers then, and the ledger does not tell which of them were read again. Nor is a row
that a `rewind` went back over, if the ledger has dropped the batches since (ledger_rows.kept).
All of it is read from the ledger: a batch does nothing for it.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ytstream.job import JobContext
from ytstream.ledger import batch_history, ledger_rows, positions
from ytstream.ledger.ledger_rows import Head
from ytstream.ownership import job_marker

_BATCHES = 500
"""Batches that one request reads."""
_CLOCK_SKEW = 3_600 * 1_000_000
"""By how much the clocks of the machines that `rewind` and the job ran on may differ."""


class PositionStatus(Enum):
    """What the ledger says about the position of a rejected row."""

    REJECTED = "rejected"
    ACCEPTED = "accepted"
    """A later batch has read it again and has not rejected it."""
    NEXT = "next"
    """The next batches read it."""
    RENUMBERED = "renumbered"
    """A reshard has removed its partition, and the job was moved after that."""
    UNKNOWN = "unknown"
    """The ledger has dropped the batches that may have read it again."""


class _ReadRange(NamedTuple):
    """The rows of one partition that a batch has read, and when it was at work."""

    epoch: int
    first: int
    end: int
    started: int
    ended: int


_Run = list[_ReadRange]
"""Ranges of one partition, the newest and highest first: none of them overlap."""


class Rewind(NamedTuple):
    """Where a rewind has moved the job in one queue, and when."""

    epoch: int
    time: int
    to: Mapping[int, int]
    """Partition -> the row that was read next. A partition that is missing may have begun anywhere.
    """

    def may_repeat(self, partition: int, row: int, time: int) -> bool:
        """Return whether the job may have read a row again that was rejected at ``time``."""
        return time <= self.time + _CLOCK_SKEW and row >= self.to.get(partition, 0)


@dataclass(frozen=True)
class LedgerReads:
    """What the job has read by now."""

    ends: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Queue -> partition -> the row that the next batch reads first."""
    runs: Mapping[tuple[str, int], Sequence[_Run]] = field(default_factory=dict)
    """Queue and partition -> what was read since the first rewind, the newest run first."""
    is_complete: bool = True
    """Whether those are all: the ledger keeps its newest batches only."""
    retired: Mapping[str, Collection[int]] = field(default_factory=dict)
    """Queue -> the partitions that a reshard has removed."""
    rewinds: Mapping[str, Sequence[Rewind]] = field(default_factory=dict)
    """Queue -> its rewinds."""

    def of(self, queue: str, partition: int, row: int, time: int) -> PositionStatus:
        """Return what is known of a row that was rejected at ``time``, in microseconds."""
        ends, runs = self.ends.get(queue, {}), self.runs.get((queue, partition), ())
        rewinds = self.rewinds.get(queue, ())
        if row >= ends.get(partition, row + 1):
            return PositionStatus.NEXT
        if partition in self.retired.get(queue, ()):
            last_read = runs[0][0].epoch if runs else 0
            if any(rewind.epoch > last_read for rewind in rewinds):
                return PositionStatus.RENUMBERED
        if (last := _last(runs, row)) is not None:
            is_rejected = last.started <= time <= last.ended
            return PositionStatus.REJECTED if is_rejected else PositionStatus.ACCEPTED
        if not self.is_complete and any(r.may_repeat(partition, row, time) for r in rewinds):
            return PositionStatus.UNKNOWN
        return PositionStatus.REJECTED


def _last(runs: Sequence[_Run], row: int) -> _ReadRange | None:
    """Return the newest range that has the row."""
    for run in runs:
        index = bisect_left(run, -row, key=lambda found: -found.first)
        if index < len(run) and row < run[index].end:
            return run[index]
    return None


def head_of(context: JobContext) -> Head | None:
    """Return the head; None before the first start. Raises JobError for one that is lost."""
    found = positions.read(context.client, context.settings)
    if found.begun is None:
        job_marker.verify_ledger(context, found)
    return found.begun


def read(context: JobContext) -> LedgerReads:
    """Return what the job has read by now. Without a rewind this reads no batch of the ledger.

    Raises JobError as head_of() does: then nothing tells which rows are read again.
    """
    client, path = context.client, context.settings.ledger
    if (head := head_of(context)) is None:
        return LedgerReads()
    rewinds = dict[str, list[Rewind]]()
    for move in client.select_rows(ledger_rows.moves_query(path)):
        for queue, moved in ledger_rows.moved_of(move).items() if move["kind"] == "rewind" else ():
            to = {partition: row for partition, (_, row) in moved.items()}
            rewind = Rewind(int(move["epoch"]), int(move["ended"]), to)
            rewinds.setdefault(queue, []).append(rewind)
    if not rewinds:
        return LedgerReads(head.ends, retired=head.retired)
    # Also a rewind to higher numbers may go back: after a reshard, or of a ledger that was lost.
    first = min(rewind.epoch for found in rewinds.values() for rewind in found)
    runs, is_complete = _runs(context, head, first)
    return LedgerReads(head.ends, runs, is_complete, head.retired, rewinds)


def _runs(
    context: JobContext, head: Head, epoch: int
) -> tuple[dict[tuple[str, int], list[_Run]], bool]:
    """Return the ranges that were read since that epoch, and whether the ledger still has all."""
    runs: dict[tuple[str, int], list[_Run]] = {}
    number = head.number
    while number > 0:
        numbers = range(max(1, number - _BATCHES + 1), number + 1)
        found = batch_history.batches(context.client, context.settings.ledger, numbers)
        since = [row for row in found if int(row["epoch"]) >= epoch]
        for row in reversed(since):
            _add(runs, row)
        if len(since) < len(found):
            return runs, True
        if len(found) < len(numbers):
            return runs, False
        number -= _BATCHES
    return runs, True


def _add(runs: dict[tuple[str, int], list[_Run]], row: batch_history.LedgerRow) -> None:
    """Add the ranges of a batch, which is older than those that are there."""
    work = int(row["started"]), int(row["ended"])
    for queue, partitions in ledger_rows.ranges_of(row).items():
        for partition, (first, end) in partitions.items():
            of_partition = runs.setdefault((queue, partition), [[]])
            if (newest := of_partition[-1]) and end > newest[-1].first:  # a move is in between
                of_partition.append([])
            of_partition[-1].append(_ReadRange(int(row["epoch"]), first, end, *work))
