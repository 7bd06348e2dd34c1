"""Reads where everything stands: queues, consumer, checkpoint, and the markers on them."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..cluster import Client, cluster_name
from ..config import Settings
from ..errors import JobError
from ..positions import Queue, Snapshot, begun_by
from . import checkpoint

#: Attribute of the checkpoint folder and of the consumer: which job they belong to.
MARKER = "ytstream_job"


def read(client: Client, settings: Settings, *, logs: bool = True) -> Snapshot:
    """Read all positions; without ``logs``, as of an empty checkpoint.

    Raises JobError for a marker or a log that is damaged.
    """
    cluster = cluster_name(client)
    return Snapshot(
        tuple(_queue(client, cluster, settings.consumer, path) for path in settings.queues),
        checkpoint.read(client, settings.checkpoint) if logs else checkpoint.EMPTY,
        _marker(client, settings.checkpoint),
        _marker(client, settings.consumer),
    )


def consumed(client: Client, cluster: str, consumer: str, queue: str) -> dict[int, int]:
    """Return the consumer's offsets on one queue: partition -> next row."""
    rows = client.select_rows(
        f"partition_index, [offset] from [{consumer}] "
        f'where queue_cluster = "{cluster}" and queue_path = "{queue}"'
    )
    return {int(row["partition_index"]): int(row["offset"]) for row in rows}


def _queue(client: Client, cluster: str, consumer: str, path: str) -> Queue:
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


def _marker(client: Client, path: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = client.get_attribute(path, MARKER, None)
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        if found is not None:
            _ = found["guarantee"], begun_by(found), [(q["path"], q["id"]) for q in found["queues"]]
        return found
    raise JobError(
        f"the attribute {MARKER} of {path} is not as the job writes it: {found}",
        f"restore it; if {path} is this job's for certain, remove it: yt remove {path}/@{MARKER}",
    )
