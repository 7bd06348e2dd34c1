"""Whether a rejected row may be replayed: rows that a `rewind` goes back over are read again.

A row that REJECT accepts when it is read again stays in `rejected`, though it is in the outputs. It
has the time of the batch that rejected it. So it is still rejected only if the last batch that has
read its position was at work at that time. A row that the job has yet to read is not replayed
either. Both are read from the ledger: a batch does nothing for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ytstream.job import JobContext
from ytstream.ledger import batch_history, ledger_rows, positions

#: Batches that one request reads.
_BATCHES = 500


class PositionStatus(Enum):
    """What the ledger says about the position of a rejected row."""

    REJECTED = "rejected"
    #: A later batch has read it again and has not rejected it.
    ACCEPTED = "accepted"
    #: The next batches read it.
    NEXT = "next"


@dataclass(frozen=True)
class _ReadRange:
    """The rows of one partition that a batch has read, and when it was at work."""

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

    def of(self, queue: str, partition: int, row: int, time: int) -> PositionStatus:
        """Return what is known of a row that was rejected at ``time``, in microseconds."""
        ends = self.ends.get(queue, {})
        if row >= ends.get(partition, row + 1):
            return PositionStatus.NEXT
        for found in self.ranges.get((queue, partition), ()):
            if found.first <= row < found.end:
                is_last = found.started <= time <= found.ended
                return PositionStatus.REJECTED if is_last else PositionStatus.ACCEPTED
        return PositionStatus.REJECTED


def read(context: JobContext) -> LedgerReads:
    """Return what the job has read by now. Without a rewind this reads no batch of the ledger."""
    client, path = context.client, context.settings.ledger
    head = positions.read_head(path, client.select_rows)
    if head is None:
        return LedgerReads()
    epochs = [
        int(move["epoch"])
        for move in client.select_rows(ledger_rows.moves_query(path))
        if any(
            now < was for rows in ledger_rows.moved_of(move).values() for was, now in rows.values()
        )
    ]
    ranges: dict[tuple[str, int], list[_ReadRange]] = {}
    number = head.number if epochs else 0
    while number > 0:
        found = batch_history.batches(
            client, path, range(max(1, number - _BATCHES + 1), number + 1)
        )
        since = [row for row in found if int(row["epoch"]) >= min(epochs)]
        for row in reversed(since):
            for queue, partitions in ledger_rows.ranges_of(row).items():
                for partition, (first, end) in partitions.items():
                    read_ = _ReadRange(first, end, int(row["started"]), int(row["ended"]))
                    ranges.setdefault((queue, partition), []).append(read_)
        number = number - _BATCHES if found and len(since) == len(found) else 0
    return LedgerReads(head.ends, ranges)
