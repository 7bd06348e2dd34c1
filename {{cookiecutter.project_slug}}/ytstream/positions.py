"""Where a job stands: values only. recovery/ reads and decides them, query/batch moves them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

#: Per queue: partition -> row. A partition at row 0 may be absent.
Rows = Sequence[Mapping[int, int]]


@dataclass(frozen=True)
class Planned:
    """One entry of Spark's offset log; ``ends`` and ``sources`` have an item for each source."""

    batch: int
    #: Partition -> the row after the batch's last one.
    ends: Rows
    #: Spark's own: watermark, batch time, frozen settings.
    metadata: Mapping[str, Any]
    #: The source lines of the file, unchanged.
    sources: tuple[str, ...] = ()

    def moved(self, ends: Rows) -> str:
        """Return the entry's text with other ends, which moves the checkpoint when written."""
        lines = [
            # A source that has not had a row yet has no line to move.
            json.loads(source) | {"partitions": {str(p): row - 1 for p, row in sorted(to.items())}}
            if source != "-"
            else source
            for source, to in zip(self.sources, cycle(ends), strict=False)
        ]
        texts = [line if isinstance(line, str) else _json(line) for line in lines]
        return "\n".join(["v1", _json(self.metadata), *texts])

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
    #: Partition -> the row the consumer reads next; a partition never advanced is absent.
    consumed: Mapping[int, int]


def behind(queue: Queue, ends: Mapping[int, int]) -> list[int]:
    """Return the partitions in which the consumer is before ``ends``."""
    return [p for p, end in ends.items() if queue.consumed.get(p, 0) < end]


def ahead(queue: Queue, ends: Mapping[int, int]) -> list[int]:
    """Return the partitions in which the consumer is beyond ``ends``."""
    return [p for p, row in queue.consumed.items() if row > ends.get(p, 0)]


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
