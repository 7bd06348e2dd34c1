"""Whether a rejected row may be replayed: rows that a `rewind` goes back over are read again.

A row that REJECT accepts when it is read again stays in `rejected`, though it is in the outputs. It
has the time of the batch that rejected it. So it is still rejected only if the last batch that has
read its position was at work at that time. A row that the job has yet to read is not replayed
either. Nor is one of a partition that a reshard has removed, if a rewind came later: its rows have
other numbers then, and nothing tells which of them were read again. All of it is read from the
ledger: a batch does nothing for it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ytstream.job import JobContext
from ytstream.ledger import batch_history, ledger_rows, positions
from ytstream.ledger.ledger_rows import Head
from ytstream.recovery import job_ownership

#: Batches that one request reads.
_BATCHES = 500


class PositionStatus(Enum):
    """What the ledger says about the position of a rejected row."""

    REJECTED = "rejected"
    #: A later batch has read it again and has not rejected it.
    ACCEPTED = "accepted"
    #: The next batches read it.
    NEXT = "next"
    #: A reshard has removed its partition, and the job was moved after that.
    RENUMBERED = "renumbered"


@dataclass(frozen=True)
class _ReadRange:
    """The rows of one partition that a batch has read, and when it was at work."""

    epoch: int
    first: int
    end: int
    started: int
    ended: int


@dataclass(frozen=True)
class LedgerReads:
    """What the job has read by now."""

    #: Queue -> partition -> the row that the next batch reads first.
    ends: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    #: Queue and partition -> the ranges that were read since the first rewind, the newest first.
    ranges: Mapping[tuple[str, int], list[_ReadRange]] = field(default_factory=dict)
    #: Queue -> the partitions that a reshard has removed.
    retired: Mapping[str, Collection[int]] = field(default_factory=dict)
    #: Queue -> the epoch of its last rewind.
    rewound: Mapping[str, int] = field(default_factory=dict)

    def of(self, queue: str, partition: int, row: int, time: int) -> PositionStatus:
        """Return what is known of a row that was rejected at ``time``, in microseconds."""
        ends, read_since = self.ends.get(queue, {}), self.ranges.get((queue, partition), [])
        if row >= ends.get(partition, row + 1):
            return PositionStatus.NEXT
        if partition in self.retired.get(queue, ()):
            last_read = max((found.epoch for found in read_since), default=0)
            if self.rewound.get(queue, 0) > last_read:
                return PositionStatus.RENUMBERED
        for found in read_since:
            if found.first <= row < found.end:
                is_last = found.started <= time <= found.ended
                return PositionStatus.REJECTED if is_last else PositionStatus.ACCEPTED
        return PositionStatus.REJECTED


def head_of(context: JobContext) -> Head | None:
    """Return the head; None before the first start. Raises JobError for one that is lost."""
    found = positions.read(context.client, context.settings)
    if found.begun is None:
        job_ownership.verify_ledger(context, found)
    return found.begun


def read(context: JobContext) -> LedgerReads:
    """Return what the job has read by now. Without a rewind this reads no batch of the ledger.

    Raises JobError as head_of() does: then nothing tells which rows are read again.
    """
    client, path = context.client, context.settings.ledger
    if (head := head_of(context)) is None:
        return LedgerReads()
    rewound, epochs = dict[str, int](), list[int]()
    for move in client.select_rows(ledger_rows.moves_query(path)):
        for queue in ledger_rows.moved_of(move) if move["kind"] == "rewind" else ():
            rewound[queue] = max(rewound.get(queue, 0), int(move["epoch"]))
            epochs.append(int(move["epoch"]))
    # Also a rewind to higher numbers may go back: after a reshard, or of a ledger that was lost.
    ranges = _ranges(context, head, min(epochs)) if epochs else {}
    return LedgerReads(head.ends, ranges, head.retired, rewound)


def _ranges(context: JobContext, head: Head, epoch: int) -> dict[tuple[str, int], list[_ReadRange]]:
    """Return the ranges that were read since that epoch, the newest first."""
    ranges: dict[tuple[str, int], list[_ReadRange]] = {}
    number = head.number
    while number > 0:
        found = batch_history.batches(
            context.client,
            context.settings.ledger,
            range(max(1, number - _BATCHES + 1), number + 1),
        )
        since = [row for row in found if int(row["epoch"]) >= epoch]
        for row in reversed(since):
            work = int(row["started"]), int(row["ended"])
            for queue, partitions in ledger_rows.ranges_of(row).items():
                for partition, (first, end) in partitions.items():
                    read_ = _ReadRange(int(row["epoch"]), first, end, *work)
                    ranges.setdefault((queue, partition), []).append(read_)
        number = number - _BATCHES if found and len(since) == len(found) else 0
    return ranges
