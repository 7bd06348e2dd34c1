"""Before every start: make checkpoint, consumer and queues agree, or refuse.

Without transactions Spark's checkpoint is the truth: a batch whose ``commits/N`` is missing runs
again over the very same rows. The consumer follows one batch behind, and it counts alone where
there is no checkpoint. SPYT does not look whether the rows still exist; a read below the queue's
first row gives the first rows there are, again and without an error (YtQueueUtils), so this module
looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import marker
from .errors import JobError
from .positions import Positions, Queue
from .positions import read as read_positions
from .settings import Settings


@dataclass
class Decision:
    """What has to change before the start, and what to tell."""

    #: (queue, partition) -> the row the consumer is to read next.
    advance: dict[tuple[str, int], int] = field(default_factory=dict)
    #: The checkpoint is older than ``advance``: it is set aside.
    drop_checkpoint: bool = False
    notes: list[str] = field(default_factory=list)


def prepare(client: Any, settings: Settings) -> list[str]:
    """Bring the job's positions into order and return what was done, a line each.

    Raises JobError when only a person can decide; nothing was changed then.
    """
    positions = read_positions(client, settings)
    marker.verify(positions, settings)
    decision = decide(positions, settings)
    apply(client, settings, positions, decision)
    return decision.notes


def decide(positions: Positions, settings: Settings) -> Decision:
    """The decision for these positions; reads and writes nothing.

    Raises JobError for a consumer that somebody moved, a queue that is shorter than the offsets,
    and, under ``on_data_loss = "fail"``, for rows that were trimmed before they were read.
    """
    decision = Decision()
    done = positions.checkpoint.done
    is_new = positions.checkpoint.last is None and positions.consumer_marker is None
    if positions.checkpoint.last is None and not is_new:
        decision.notes.append(
            f"the checkpoint {settings.checkpoint} is gone: going on from the consumer, "
            "which is up to one micro-batch behind"
        )
    lost = False
    resume: dict[tuple[str, int], int] = {}
    for index, queue in enumerate(positions.queues):
        planned = done.ends[index] if done is not None else None
        if is_new and not queue.consumed:
            _start(queue, settings, decision)
            continue
        if planned is not None:
            _refuse_moved_consumer(queue, planned)
        starts = planned if planned is not None else queue.consumed
        for partition, lower in enumerate(queue.lower):
            start = starts.get(partition, 0)
            _refuse_short_queue(queue, partition, start)
            resume[queue.path, partition] = max(start, lower)
            if start < lower:
                lost = True
                decision.notes.append(_gap(queue, partition, start, lower))
    if lost:
        if settings.on_data_loss == "fail":
            raise JobError(
                "; ".join(note for note in decision.notes if "trimmed" in note),
                'the rows cannot be had back; set on_data_loss = "skip" to go on behind the gap',
            )
        # All partitions, not only the trimmed ones: once the checkpoint is set aside, the consumer,
        # which is a batch behind it, would decide for the others too and repeat that batch.
        decision.advance |= resume
        decision.drop_checkpoint = positions.checkpoint.last is not None
    return decision


def apply(client: Any, settings: Settings, positions: Positions, decision: Decision) -> None:
    """Carry the decision out; each step may be repeated after a crash in between."""
    consumed = {queue.path: queue.consumed for queue in positions.queues}
    for (queue, partition), row in decision.advance.items():
        old = consumed[queue].get(partition)
        if old != row:
            client.advance_queue_consumer(settings.consumer, queue, partition, old, row)
    if decision.drop_checkpoint:
        aside = f"{settings.checkpoint}.before-gap-{positions.checkpoint.planned[-1].batch}"
        client.move(settings.checkpoint, aside, force=True)
        client.create("map_node", settings.checkpoint)
        decision.notes.append(f"the checkpoint was set aside as {aside}")
        positions = read_positions(client, settings)
    marker.write(client, positions, settings)


def _start(queue: Queue, settings: Settings, decision: Decision) -> None:
    starts = queue.lower if settings.start_from == "earliest" else queue.upper
    decision.notes.append(
        f"new consumer: {queue.path} from its {settings.start_from} rows, "
        f"{', '.join(map(str, starts))} by partition"
    )
    for partition, row in enumerate(starts):
        if row:
            decision.advance[queue.path, partition] = row


def _refuse_moved_consumer(queue: Queue, planned: Mapping[int, int]) -> None:
    ahead = {p: row for p, row in queue.consumed.items() if row > planned.get(p, 0)}
    if ahead:
        raise JobError(
            f"the consumer was moved on {queue.path}: "
            + "; ".join(
                f"partition {p} to row {row}, the checkpoint is at {planned.get(p, 0)}"
                for p, row in ahead.items()
            ),
            "SPYT would skip rows; configure a new checkpoint to start where the consumer stands",
        )


def _refuse_short_queue(queue: Queue, partition: int, start: int) -> None:
    if start > queue.upper[partition]:
        raise JobError(
            f"queue {queue.path}, partition {partition} ends at row {queue.upper[partition]}, but "
            f"the job has read up to row {start}: the queue or its tablets were made again",
            "configure a new consumer and a new checkpoint",
        )


def _gap(queue: Queue, partition: int, start: int, lower: int) -> str:
    return (
        f"{lower - start} rows of {queue.path} were trimmed before this job read them: partition "
        f"{partition}, rows {start} to {lower - 1}"
    )
