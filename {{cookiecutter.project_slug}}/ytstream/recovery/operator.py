"""Operator commands for a stopped job: `rewind` and `migrate`."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ..cluster import Client
from ..config import Settings
from ..errors import JobError
from ..job import Connection
from ..positions import Queue
from . import ownership, snapshot
from .decision import advance
from .snapshot import MARKER


def rewind(connection: Connection, to: str, rows: Sequence[str]) -> list[str]:
    """Move the consumer and set the checkpoint aside, so that the next start begins there.

    ``to`` is "earliest", "latest" or "rows"; then ``rows`` are QUEUE:PARTITION=ROW, and other
    partitions stay where they are. Returns what was done. Raises JobError before any change.
    """
    client, settings = connection.client, connection.settings
    found = snapshot.read(client, settings, logs=False)  # the logs may be damaged
    ownership.verify_owner(connection, found)
    targets = _targets({queue.path: queue for queue in found.queues}, to, rows)
    done = [_set_aside(client, settings)] if client.list(settings.checkpoint) else []
    done += advance(client, settings, found.queues, targets)
    moved = snapshot.read(client, settings)
    ownership.mark_new_checkpoint(connection, moved)
    # From here on the consumer's rows count, not start_from.
    client.set(f"{settings.consumer}/@{MARKER}", ownership.marker_of(connection, moved.queues))
    return done or ["the consumer is there already"]


def migrate(connection: Connection) -> list[str]:
    """Take checkpoint and consumer over from the former guarantee. Returns what was done.

    Raises JobError when the new guarantee cannot continue from where the job was stopped.
    """
    client, settings = connection.client, connection.settings
    found = snapshot.read(client, settings)
    mine = ownership.marker_of(connection, found.queues)
    # Both are looked at: a `migrate` that was cut off has changed the first one alone.
    markers = [marker for marker in (found.checkpoint_marker, found.consumer_marker) if marker]
    others = [marker for marker in markers if marker.get("guarantee") != mine["guarantee"]]
    if not others:
        return [f"nothing to do: the job's guarantee is {mine['guarantee']}"]
    marker, former = others[0], str(others[0]["guarantee"])
    # Everything but the guarantee, and the output that belongs to it, has to be the same job.
    taken_over = {"guarantee": mine["guarantee"], "output": mine["output"]}
    ownership.compare("checkpoint", settings.checkpoint, mine, {**marker, **taken_over})
    done = advance(client, settings, found.queues, connection.guarantee.adopt(found, former))
    for path, marked in (
        (settings.checkpoint, found.checkpoint_marker),
        (settings.consumer, found.consumer_marker),
    ):
        client.set(f"{path}/@{MARKER}", {**(marked or {}), **mine})
    return [*done, f"the job's guarantee was {former} and is {mine['guarantee']} now"]


def _targets(
    queues: Mapping[str, Queue], to: str, rows: Sequence[str]
) -> dict[tuple[str, int], int]:
    example = f"rows {next(iter(queues))}:0=42"
    if bool(rows) != (to == "rows"):
        raise JobError("rows go with `rewind rows`, and only with it", f"e.g. rewind {example}")
    ends = {"earliest": "lower", "latest": "upper"}
    if to in ends:
        return {
            (queue.path, partition): row
            for queue in queues.values()
            for partition, row in enumerate(getattr(queue, ends[to]))
        }
    targets = {}
    for text in rows:
        match = re.fullmatch(r"(.+):(\d+)=(\d+)", text)
        if match is None or match[1] not in queues:
            raise JobError(f"cannot read {text!r}", f"write QUEUE:PARTITION=ROW, e.g. {example}")
        queue, partition, row = queues[match[1]], int(match[2]), int(match[3])
        known = dict(enumerate(zip(queue.lower, queue.upper, strict=True)))
        if partition not in known or not known[partition][0] <= row <= known[partition][1]:
            raise JobError(f"{text!r} is not in the queue", f"its rows by partition: {known}")
        targets[queue.path, partition] = row
    return targets


def _set_aside(client: Client, settings: Settings) -> str:
    aside = f"{settings.checkpoint}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    client.move(settings.checkpoint, aside)
    client.create("map_node", settings.checkpoint)
    return f"the checkpoint was moved to {aside}"
