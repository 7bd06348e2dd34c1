"""The positions of a stopped job: values only. recovery/ reads them, guarantees/ judge them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Per queue: partition -> row.
Rows = Sequence[Mapping[int, int]]


@dataclass(frozen=True)
class Planned:
    """One entry of Spark's offset log; ``ends`` and ``sources`` have one item per queue."""

    batch: int
    #: Partition -> the row after the batch's last one.
    ends: tuple[Mapping[int, int], ...]
    #: Spark's own: watermark, batch time, frozen settings.
    metadata: Mapping[str, Any]
    #: The source lines of the file, unchanged.
    sources: tuple[str, ...] = ()

    def moved(self, ends: Rows) -> str:
        """Return the entry's text with other ends, which moves the checkpoint when written."""
        partitions = [{str(p): row - 1 for p, row in sorted(wanted.items())} for wanted in ends]
        lines = [
            json.loads(source) | {"partitions": rows}
            for source, rows in zip(self.sources, partitions, strict=True)
        ]
        return "\n".join(["v1", *map(_json, [self.metadata, *lines])])

    def commit_text(self) -> str:
        """Return the commit log's entry; its older watermark only closes windows later."""
        watermark = int(self.metadata.get("batchWatermarkMs", 0))
        return "v1\n" + _json({"nextBatchWatermarkMs": watermark})


@dataclass(frozen=True)
class Checkpoint:
    """The newest two entries of the offset log and the numbers in the commit log."""

    planned: tuple[Planned, ...]
    committed: frozenset[int]

    @property
    def last(self) -> Planned | None:
        """The newest planned batch, finished or not."""
        return self.planned[-1] if self.planned else None

    @property
    def is_last_committed(self) -> bool:
        """Whether Spark counts the newest planned batch as done."""
        return self.last is not None and self.last.batch in self.committed

    @property
    def before_last(self) -> Planned | None:
        """The planned batch before the newest one."""
        return self.planned[-2] if len(self.planned) > 1 else None

    @property
    def done(self) -> Planned | None:
        """The newest batch that Spark will not run again."""
        return self.last if self.is_last_committed else self.before_last


@dataclass(frozen=True)
class Queue:
    """One queue; ``lower`` and ``upper`` (one past the last row) are row numbers by partition."""

    path: str
    id: str
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    #: Partition -> the row the consumer reads next; a partition never advanced is absent.
    consumed: Mapping[int, int]


@dataclass(frozen=True)
class Snapshot:
    """Queues, consumer, checkpoint and their markers, read in one go while the job is stopped."""

    queues: tuple[Queue, ...]
    checkpoint: Checkpoint
    checkpoint_marker: Mapping[str, Any] | None
    consumer_marker: Mapping[str, Any] | None

    @property
    def begun(self) -> list[Mapping[int, int]]:
        """The consumer's offsets when the checkpoint was begun, by its marker."""
        noted = begun_by(self.checkpoint_marker or {})
        return noted if len(noted) == len(self.queues) else [{} for _ in self.queues]

    @property
    def stands(self) -> list[Mapping[int, int]]:
        """The consumer's offsets now, queue by queue, without partitions at row 0."""
        return [{p: row for p, row in queue.consumed.items() if row} for queue in self.queues]

    @property
    def is_checkpoint_lost(self) -> bool:
        """Whether the checkpoint has no batch, though the consumer has moved since it was begun."""
        is_empty = self.checkpoint.last is None and self.consumer_marker is not None
        return is_empty and self.stands != self.begun


@dataclass(frozen=True)
class Begun:
    """Where a query begins, queue by queue: the object's id, and each partition's first row."""

    ids: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True)
class Start:
    """A guarantee's verdict: where each queue continues, and what its logs need for that."""

    #: The first row of the next batch; a partition that was never read is absent.
    rows: Rows
    #: A batch whose entry is removed from the commit log: it runs again.
    uncommit: int | None = None
    #: A batch whose missing entry is added to the commit log: it does not run again.
    commit: Planned | None = None
    notes: tuple[str, ...] = ()


def begun_by(marker: Mapping[str, Any]) -> list[Mapping[int, int]]:
    """Return the rows noted in a marker; raises TypeError, ValueError or AttributeError."""
    noted = marker.get("begun", ())
    return [{int(partition): int(row) for partition, row in rows.items()} for rows in noted]


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
