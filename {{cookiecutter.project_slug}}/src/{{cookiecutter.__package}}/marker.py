"""Whose checkpoint and whose consumer: a note left on both, compared before every start."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from .errors import JobError
from .guarantee import NAME as GUARANTEE
from .positions import MARKER, Positions, Queue
from .processing import NAME as PROCESSING
from .session import APP_NAME
from .settings import Settings
from .tables import OUTPUT, QUEUE


def wanted(queues: Sequence[Queue], settings: Settings) -> dict[str, Any]:
    """The marker of this job: name, kind, output, columns, and its queues with their object ids."""
    described = [f"{name} {type_} {required}" for name, type_, required in (*QUEUE, *OUTPUT)]
    return {
        "job": APP_NAME,
        "guarantee": GUARANTEE,
        "processing": PROCESSING,
        "output": settings.output,
        "schema": sha256("\n".join(described).encode()).hexdigest(),
        "queues": [{"path": queue.path, "id": queue.id} for queue in queues],
    }


def verify(positions: Positions, settings: Settings) -> None:
    """Raise JobError when checkpoint or consumer belong to another job, guarantee or queue."""
    mine = wanted(positions.queues, settings)
    for where, path, found in (
        ("checkpoint", settings.checkpoint, positions.checkpoint_marker),
        ("consumer", settings.consumer, positions.consumer_marker),
    ):
        if found is not None:
            compare(where, path, mine, found)


def write(client: Any, positions: Positions, settings: Settings) -> list[str]:
    """Leave the marker where it is missing or outdated; returns what to tell."""
    mine, found = wanted(positions.queues, settings), positions.consumer_marker
    if positions.checkpoint_marker is None or positions.checkpoint.last is None:
        begin(client, positions, settings)
    if found is not None and found.get("schema") == mine["schema"]:
        return []
    client.set(f"{settings.consumer}/@{MARKER}", mine)
    return ["tables.py has changed: rows written before stay as they are"] if found else []


def begin(client: Any, positions: Positions, settings: Settings) -> None:
    """Mark a new checkpoint, with the rows it begins at: an empty one is right only there."""
    begun = [{str(p): row for p, row in rows.items()} for rows in positions.stands]
    mine = {**wanted(positions.queues, settings), "begun": begun}
    client.set(f"{settings.checkpoint}/@{MARKER}", mine)


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
            f"queue {queue} was dropped and made again (object {old[queue]} is now {new[queue]}): "
            "its rows are numbered from 0, the stored offsets mean nothing",
            anew,
        )
