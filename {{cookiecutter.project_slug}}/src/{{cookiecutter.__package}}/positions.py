"""Where everything stands: queues, consumer, checkpoint, and the markers on them."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from . import checkpoint as checkpoints
from .checkpoint import Checkpoint
from .cluster import cluster_name
from .errors import JobError
from .settings import Settings

#: Attribute of the checkpoint folder and of the consumer: which job they belong to.
MARKER = "ytstream_job"


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
class Positions:
    """What recovery decides on; read in one go while the job is stopped."""

    queues: tuple[Queue, ...]
    checkpoint: Checkpoint
    checkpoint_marker: Mapping[str, Any] | None
    consumer_marker: Mapping[str, Any] | None

    @property
    def begun(self) -> list[Mapping[int, int]]:
        """Where the consumer stood when the checkpoint was begun, by its marker."""
        noted = _begun(self.checkpoint_marker or {})
        return noted if len(noted) == len(self.queues) else [{} for _ in self.queues]

    @property
    def stands(self) -> list[Mapping[int, int]]:
        """Where the consumer stands, queue by queue, without partitions at row 0."""
        return [{p: row for p, row in queue.consumed.items() if row} for queue in self.queues]

    @property
    def is_checkpoint_lost(self) -> bool:
        """Whether it has no batch, though the consumer has moved since it was begun."""
        is_empty = self.checkpoint.last is None and self.consumer_marker is not None
        return is_empty and self.stands != self.begun


def read(client: Any, settings: Settings, *, logs: bool = True) -> Positions:
    """All positions; without ``logs`` as of an empty checkpoint. JobError for what is damaged."""
    cluster = cluster_name(client)
    return Positions(
        tuple(_queue(client, cluster, settings.consumer, path) for path in settings.queues),
        checkpoints.read(client, settings.checkpoint) if logs else Checkpoint((), frozenset()),
        _marker(client, settings.checkpoint),
        _marker(client, settings.consumer),
    )


def _queue(client: Any, cluster: str, consumer: str, path: str) -> Queue:
    tablets = range(int(client.get(f"{path}/@tablet_count")))
    # Fresher than @queue_partitions, which the Queue Agent refreshes every few seconds.
    infos = client.get_tablet_infos(path, list(tablets))["tablets"]
    return Queue(
        path,
        str(client.get(f"{path}/@id")),
        tuple(int(info["trimmed_row_count"]) for info in infos),
        tuple(int(info["total_row_count"]) for info in infos),
        consumed(client, cluster, consumer, path),
    )


def consumed(client: Any, cluster: str, consumer: str, queue: str) -> dict[int, int]:
    """The consumer's offsets on one queue: partition -> next row."""
    rows = client.select_rows(
        f"partition_index, [offset] from [{consumer}] "
        f'where queue_cluster = "{cluster}" and queue_path = "{queue}"'
    )
    return {int(row["partition_index"]): int(row["offset"]) for row in rows}


def _begun(marker: Mapping[str, Any]) -> list[Mapping[int, int]]:
    noted = marker.get("begun", ())
    return [{int(partition): int(row) for partition, row in rows.items()} for rows in noted]


def _marker(client: Any, path: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = client.get_attribute(path, MARKER, None)
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        if found is not None:
            _ = found["guarantee"], _begun(found), [(q["path"], q["id"]) for q in found["queues"]]
        return found
    raise JobError(
        f"the attribute {MARKER} of {path} is not as the job writes it: {found}",
        f"restore it; if {path} is this job's for certain, remove it: yt remove {path}/@{MARKER}",
    )
