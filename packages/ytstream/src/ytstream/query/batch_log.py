"""The line that the log has of each micro-batch, once it has happened."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..job import LATE, REJECTED
from ..ledger.ledger_rows import BatchRow, Head, batch_name
from ..ledger.offsets import Queue, waiting


@dataclass(frozen=True)
class BatchReport:
    """What a batch has written, and the head after it."""

    head: Head
    done: BatchRow
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Reason -> rows in `rejected`."""
    totals: Collection[str] = ()
    """Outputs whose tables add up what a batch gives: fewer rows than it gives."""

    @property
    def name(self) -> str:
        """The batch as people read it: epoch and number."""
        return batch_name(self.head.epoch, self.head.batch)

    @property
    def is_empty(self) -> bool:
        """Whether the batch has read nothing and written nothing."""
        return not (self.done.read or any(self.done.written.values()) or self.done.late)

    def line(self, queues: Sequence[Queue], most: int, seconds: float) -> str:
        """Return the line. ``queues`` are of the last look; a partition gives ``most`` rows."""
        done = self.done
        parts = [f"read {done.read:,}", *map(self._written, done.written)]
        if reasons := [f"{rows:,} {reason}" for reason, rows in self.rejected.items() if rows]:
            place = [*done.written].index(REJECTED) + 1
            parts[place] += f" ({', '.join(reasons)})"
        parts += [
            f"{name} removed {one.removed:,}, unchanged {one.unchanged:,}"
            for name, one in done.changes.items()
        ]
        if done.late and LATE not in self.rejected:
            parts.append(f"late {done.late:,}")
        if done.without_time:
            parts.append(f"without event time {done.without_time:,}")
        parts += [
            f"looked up {one.rows:,} in {name}, {one.missing:,} not found"
            for name, one in done.lookups.items()
            if one.rows
        ]
        if reasons := [f"{rows:,} {reason}" for reason, rows in done.warned.items() if rows]:
            parts.append(f"warned {', '.join(reasons)}")
        if (rows := self.lag(queues, most)) is not None:
            parts.append(f"lag {rows:,}")
        parts.append(f"{seconds:.2f} s")
        return f"batch {self.name}: {' · '.join(parts)}"

    def _written(self, output: str) -> str:
        rows = self.done.written[output]
        what = f" contribution{'s' * (rows != 1)}" if output in self.totals else ""
        return f"{output} {rows:,}{what}"

    def lag(self, queues: Sequence[Queue], most: int) -> int | None:
        """Return how many rows the queues had after the batch; None if no look has shown it.

        A batch that is beyond the last look has left rows in a partition only if it has read as
        many there as a batch may.
        """
        most = self.done.limit or most
        for queue in queues:
            ends = self.head.ends.get(queue.path, {})
            for partition, (first, end) in self.done.ranges.get(queue.path, {}).items():
                is_seen = partition < len(queue.upper) and queue.upper[partition] > ends[partition]
                if end - first >= most and not is_seen:
                    return None
        return waiting(queues, self.head.ends) if queues else None
