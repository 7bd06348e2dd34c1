"""What is done to a stopped job by hand: move its consumer, or change its guarantee."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from . import marker
from .errors import JobError
from .positions import MARKER, Queue
from .positions import read as read_positions
from .repairs import advance
from .resume import adopt
from .settings import Settings


def rewind(client: Any, settings: Settings, to: str, rows: Sequence[str]) -> list[str]:
    """Move the consumer and set the checkpoint aside, so that the next start begins there.

    ``to`` is "earliest", "latest" or "rows"; then ``rows`` are QUEUE:PARTITION=ROW, and others stay
    where they are. Returns what was done. Raises JobError before anything is changed.
    """
    positions = read_positions(client, settings, logs=False)  # they may be damaged
    marker.verify(positions, settings)
    queues = {queue.path: queue for queue in positions.queues}
    targets = _targets(queues, to, rows)
    done = [_set_aside(client, settings)] if client.list(settings.checkpoint) else []
    done += advance(client, settings, positions.queues, targets)
    marker.begin(client, read_positions(client, settings), settings)
    return done


def migrate(client: Any, settings: Settings) -> list[str]:
    """Take checkpoint and consumer over from the former guarantee. Returns what was done.

    Raises JobError when the job was not stopped in a state that the new guarantee can go on from.
    """
    positions = read_positions(client, settings)
    mine = marker.wanted(positions.queues, settings)
    found = positions.checkpoint_marker or positions.consumer_marker
    if found is None or found.get("guarantee") == mine["guarantee"]:
        return [f"nothing to do: the job's guarantee is {mine['guarantee']}"]
    former = str(found["guarantee"])
    # Everything but the guarantee, and the output that belongs to it, has to be the same job.
    taken_over = {"guarantee": mine["guarantee"], "output": mine["output"]}
    marker.compare("checkpoint", settings.checkpoint, mine, {**found, **taken_over})
    done = advance(client, settings, positions.queues, adopt(positions, former))
    for path, marked in (
        (settings.checkpoint, positions.checkpoint_marker),
        (settings.consumer, positions.consumer_marker),
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


def _set_aside(client: Any, settings: Settings) -> str:
    aside = f"{settings.checkpoint}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    client.move(settings.checkpoint, aside)
    client.create("map_node", settings.checkpoint)
    return f"the checkpoint was moved to {aside}"
