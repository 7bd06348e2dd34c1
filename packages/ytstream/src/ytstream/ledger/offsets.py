"""Where a job is: values only. recovery/ reads and decides them, query/batch moves them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .queue_layout import Position, QueueLayout

Rows = Sequence[Mapping[int, int]]
"""Per queue: partition -> row. A partition at row 0 may be absent."""
ByQueue = Mapping[str, Mapping[int, int]]
"""Queue -> partition -> row."""


@dataclass(frozen=True)
class OffsetLogEntry:
    """One entry of Spark's offset log; ``ends`` and ``sources`` have an item for each source."""

    batch: int
    ends: Rows
    """Partition -> the row after the batch's last one."""
    metadata: Mapping[str, Any]
    """Spark's own: watermark, batch time, frozen settings."""
    sources: tuple[str, ...] = ()
    """The source lines of the file, unchanged."""

    def moved(self, queues: Sequence[str], to: ByQueue, cluster: str) -> str:
        """Return the text of this entry, which is of ``queues``, for those of ``to`` at their rows.

        Written, it moves the checkpoint. A union of the rows with themselves has a line for each
        queue more than once: see spark_logs.by_queue().
        """
        lines = []
        for start in range(0, len(self.sources), len(queues)):
            was = dict(zip(queues, self.sources[start:], strict=False))
            lines += [_source(was.get(path), cluster, path, rows) for path, rows in to.items()]
        return "\n".join(["v1", _json(self.metadata), *lines])

    def commit_text(self) -> str:
        """Return the commit log's entry; its older watermark only closes windows later."""
        watermark = int(self.metadata.get("batchWatermarkMs", 0))
        return "v1\n" + _json({"nextBatchWatermarkMs": watermark})


@dataclass(frozen=True)
class Queue:
    """One queue; ``lower`` and ``upper`` (one past the last row) are row numbers by partition."""

    path: str
    id: str
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    consumed: Mapping[int, int]
    """Partition -> the row the consumer reads next; a partition never advanced is absent."""
    layout: QueueLayout | None = None
    """Into which tablets it is cut; None: not known."""
    newer: frozenset[Position] = frozenset()
    """Of another layout than the head's: rows that were written after what the job has read."""


def waiting(queues: Sequence[Queue], ends: ByQueue) -> int:
    """Return how many rows there are after ``ends``."""
    return sum(
        max(0, upper - ends.get(queue.path, {}).get(partition, 0))
        for queue in queues
        for partition, upper in enumerate(queue.upper)
    )


def behind(queue: Queue, ends: Mapping[int, int]) -> list[int]:
    """Return the partitions in which the consumer is before ``ends``."""
    return [p for p, end in ends.items() if queue.consumed.get(p, 0) < end]


def ahead(queue: Queue, ends: Mapping[int, int]) -> list[int]:
    """Return the partitions in which the consumer is beyond ``ends``."""
    return [p for p, row in queue.consumed.items() if row > ends.get(p, 0)]


def _source(was: str | None, cluster: str, path: str, rows: Mapping[int, int]) -> str:
    """Return the line of a queue; SPYT takes the place in its consumer from it, and the rows."""
    if was == "-":  # a source that has not had a row yet has no line to move
        return was
    place = {"cluster": cluster, "path": path} if was is None else json.loads(was)
    return _json(place | {"partitions": {str(p): row - 1 for p, row in sorted(rows.items())}})


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
