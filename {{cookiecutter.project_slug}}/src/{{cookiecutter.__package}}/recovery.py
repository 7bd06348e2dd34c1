"""Before every start: make checkpoint, consumer and queues agree, or refuse.

SPYT does not look whether the rows an offset names still exist: a read below a queue's first row
gives the first rows there are, again and without an error (YtQueueUtils). And where a driver died
decides whether Spark's logs or the consumer tell the truth. So this module looks, while the job
stands still.
"""

from typing import Any

from . import marker, repairs, state
from .errors import JobError
from .positions import Positions, Queue
from .positions import read as read_positions
from .repairs import Decision
from .resume import resume
from .settings import Settings


def prepare(client: Any, settings: Settings) -> list[str]:
    """Bring the job's positions into order and return what was found and done, a line each.

    Raises JobError when only a person can decide; nothing was changed then.
    """
    positions = read_positions(client, settings)
    marker.verify(positions, settings)
    decision = decide(positions, settings)
    repairs.apply(client, settings, positions, decision)
    return decision.notes + marker.write(client, read_positions(client, settings), settings)


def decide(positions: Positions, settings: Settings) -> Decision:
    """The decision for these positions; reads and writes nothing.

    Raises JobError for offsets that no crash leaves behind, for a queue that is shorter than them,
    and, under ``on_data_loss = "fail"``, for rows trimmed before they were read.
    """
    decision = Decision()
    if positions.checkpoint.last is None and positions.checkpoint.committed:
        raise JobError(
            f"{settings.checkpoint} has a commit log and no offset log",
            "restore the checkpoint, or use `rewind`, which starts a new one",
        )
    if positions.is_checkpoint_lost:
        decision.notes.append(
            f"the checkpoint {settings.checkpoint} is gone: {state.without_checkpoint(positions)}"
        )
    state.verify(positions)
    starts = [dict(start) for start in resume(positions, decision)]
    has_run = positions.checkpoint.last is not None or positions.consumer_marker is not None
    gaps: list[str] = []
    for queue, start in zip(positions.queues, starts, strict=True):
        if not has_run and not queue.consumed:
            _choose_start(queue, start, settings, decision)
            continue
        bounds = dict(enumerate(zip(queue.lower, queue.upper, strict=True)))
        for partition in sorted({*start, *bounds}):
            row = start.setdefault(partition, 0)
            lower, upper = bounds.get(partition, (0, 0))
            if row > upper:
                raise JobError(
                    f"queue {queue.path}, partition {partition} ends at row {upper}, the job has "
                    f"read up to row {row}: the queue or its tablets were made again",
                    "configure a new consumer and a new checkpoint",
                )
            if row < lower:
                gaps.append(
                    f"{lower - row} rows of {queue.path} were trimmed before this job read them: "
                    f"partition {partition}, rows {row} to {lower - 1}"
                )
                start[partition] = lower
    if gaps:
        if settings.on_data_loss == "fail":
            raise JobError(
                "; ".join(gaps),
                'they cannot be had back; set on_data_loss = "skip" to go on behind the gap',
            )
        decision.notes += gaps
        _skip(positions, starts, decision)
    return decision


def _choose_start(
    queue: Queue, start: dict[int, int], settings: Settings, decision: Decision
) -> None:
    rows = queue.lower if settings.start_from == "earliest" else queue.upper
    start.update(enumerate(rows))
    decision.advance |= {(queue.path, partition): row for partition, row in enumerate(rows) if row}
    decision.notes.append(
        f"new consumer: {queue.path} from its {settings.start_from} rows, by partition "
        f"{', '.join(map(str, rows))}"
    )


def _skip(positions: Positions, starts: list[dict[int, int]], decision: Decision) -> None:
    """Move consumer and checkpoint behind the gap, both for all partitions.

    The checkpoint is moved and not dropped: it may hold state, and its other partitions are exact
    where the consumer's may be a batch behind.
    """
    for queue, start in zip(positions.queues, starts, strict=True):
        decision.advance |= {(queue.path, partition): row for partition, row in start.items()}
    last, done = positions.checkpoint.last, positions.checkpoint.done
    if decision.uncommit is not None:
        done = positions.checkpoint.before_last
        decision.unplan = decision.uncommit
    elif last is not None and not positions.checkpoint.is_last_committed:
        decision.unplan = last.batch
    if done is not None:
        decision.rebase = (done, tuple(starts))
