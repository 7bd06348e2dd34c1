"""Marks the job that owns a checkpoint and a consumer; checked before every start."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from ..errors import JobError
from ..job import Connection
from ..positions import Queue, Snapshot
from .snapshot import MARKER


def marker_of(connection: Connection, queues: Sequence[Queue]) -> dict[str, Any]:
    """Return this job's marker: name, kind, output, columns, and its queues with their ids."""
    job = connection.job
    columns = (*job.queue_columns, *job.output_columns["output"])
    described = [f"{column.name} {column.type} {column.required}" for column in columns]
    return {
        "job": job.name,
        "guarantee": connection.guarantee.name,
        "processing": job.processing,
        "output": connection.settings.output,
        "schema": sha256("\n".join(described).encode()).hexdigest(),
        "queues": [{"path": queue.path, "id": queue.id} for queue in queues],
    }


def verify_owner(connection: Connection, found: Snapshot) -> None:
    """Raise JobError when checkpoint or consumer belong to another job, guarantee or queue."""
    mine = marker_of(connection, found.queues)
    for where, path, marker in (
        ("checkpoint", connection.settings.checkpoint, found.checkpoint_marker),
        ("consumer", connection.settings.consumer, found.consumer_marker),
    ):
        if marker is not None:
            compare(where, path, mine, marker)


def mark(connection: Connection, found: Snapshot) -> list[str]:
    """Write the marker where it is missing or outdated; return what to tell."""
    mine, marker = marker_of(connection, found.queues), found.consumer_marker
    if found.checkpoint_marker is None or found.checkpoint.last is None:
        mark_new_checkpoint(connection, found)
    if marker is not None and marker.get("schema") == mine["schema"]:
        return []
    connection.client.set(f"{connection.settings.consumer}/@{MARKER}", mine)
    return ["tables.py has changed: rows written before stay as they are"] if marker else []


def mark_new_checkpoint(connection: Connection, found: Snapshot) -> None:
    """Mark a new checkpoint with the rows it begins at: an empty one is right only there."""
    begun = [{str(p): row for p, row in rows.items()} for rows in found.stands]
    mine = {**marker_of(connection, found.queues), "begun": begun}
    connection.client.set(f"{connection.settings.checkpoint}/@{MARKER}", mine)


def compare(where: str, path: str, mine: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Raise JobError, naming ``where``, unless the marker ``found`` there is this job's."""
    for key in ("job", "output", "processing"):
        if found.get(key) != mine[key]:
            raise JobError(
                f"the {where} {path} belongs to another job: its {key} is {found.get(key)!r}, "
                f"this job's is {mine[key]!r}",
                f"give this job a {where} of its own in the configuration",
            )
    if found.get("guarantee") != mine["guarantee"]:
        raise JobError(
            f"the {where} {path} was written under guarantee {found.get('guarantee')!r}, "
            f"this job's is {mine['guarantee']!r}: the consumer may be a batch behind",
            "run `migrate` with the job stopped, or go back to the former guarantee",
        )
    old = {str(queue["path"]): str(queue["id"]) for queue in found.get("queues", [])}
    new = {queue["path"]: queue["id"] for queue in mine["queues"]}
    anew = "configure a new consumer and a new checkpoint"
    if list(old) != list(new):
        raise JobError(
            f"the {where} {path} is for the queues {', '.join(old)}, the configuration names "
            f"{', '.join(new)}; a checkpoint knows its queues by position",
            anew,
        )
    for queue in [queue for queue in new if old[queue] != new[queue]]:
        raise JobError(
            f"queue {queue} was dropped and recreated (object {old[queue]} is now {new[queue]}): "
            "its rows are numbered from 0, the stored offsets mean nothing",
            anew,
        )
