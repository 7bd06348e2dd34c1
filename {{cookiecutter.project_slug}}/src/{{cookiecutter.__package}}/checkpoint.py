"""Spark's checkpoint as it lies in Cypress: which batches were planned, which are done.

``offsets/N`` is written before batch N runs (offset log), ``commits/N`` after it (commit log). Both
are text: ``v1``, a line of JSON metadata, then in ``offsets`` one line per source, in which SPYT
stores the index of the LAST row of each partition (YtQueueOffset).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import JobError


@dataclass(frozen=True)
class Planned:
    """One entry of the offset log; one of ``ends`` and ``sources`` per queue, in their order."""

    batch: int
    #: Partition -> the row after the batch's last one.
    ends: tuple[Mapping[int, int], ...]
    #: Spark's: watermark, batch time, frozen settings.
    metadata: Mapping[str, Any]
    #: The source lines as they stand in the file.
    sources: tuple[str, ...] = ()

    def moved(self, ends: Sequence[Mapping[int, int]]) -> str:
        """The entry's text with other ends: what is written to move the checkpoint."""
        partitions = [{str(p): row - 1 for p, row in sorted(wanted.items())} for wanted in ends]
        lines = [
            json.loads(source) | {"partitions": rows}
            for source, rows in zip(self.sources, partitions, strict=True)
        ]
        return "\n".join(["v1", *map(_json, [self.metadata, *lines])])

    def commit_text(self) -> str:
        """The commit log's entry; an older watermark, as this one is, only closes windows later."""
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


def read(client: Any, path: str) -> Checkpoint:
    """Read the checkpoint folder ``path``; one that is absent or new gives an empty Checkpoint.

    Raises JobError for a log that is cut or not in the format of version 1.
    """
    try:
        planned = tuple(
            _planned(batch, bytes(client.read_file(f"{path}/offsets/{batch}").read()).decode())
            for batch in _numbers(client, f"{path}/offsets")[-2:]
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JobError(
            f"the newest entries of {path}/offsets cannot be read: {error}",
            "restore the checkpoint, or use `rewind`, which starts a new one",
        ) from error
    return Checkpoint(planned, frozenset(_numbers(client, f"{path}/commits")))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _numbers(client: Any, folder: str) -> list[int]:
    if not client.exists(folder):
        return []
    # Names that are no numbers are Spark's temporary files.
    return sorted(int(name) for name in client.list(folder) if str(name).isdigit())


def _planned(batch: int, text: str) -> Planned:
    lines = text.splitlines()
    if len(lines) < 3 or lines[0] != "v1":
        raise ValueError(f"entry {batch} is cut short or of an unknown version: {text[:60]!r}")
    sources, metadata = tuple(lines[2:]), json.loads(lines[1])
    metadata.get("conf", {}).items()  # maps both, or AttributeError
    return Planned(batch, tuple(map(_ends, sources)), metadata, sources)


def _ends(source: str) -> dict[int, int]:
    if source == "-":  # a source that has not had a row yet
        return {}
    return {int(p): last + 1 for p, last in json.loads(source)["partitions"].items()}
