"""Before every start: make checkpoint, consumer and queues agree, or refuse.

SPYT does not check whether the rows an offset names still exist: a read below a queue's first row
returns the first rows there are, again and without an error (YtQueueUtils). And whether Spark's
logs or the consumer tell the truth depends on where a driver died. So this module compares them
while the job is stopped.
"""

from dataclasses import replace

from ..config import Settings
from ..errors import JobError
from ..job import Connection
from ..positions import Begun, Queue, Rows, Snapshot
from . import decision, fence, ownership, snapshot, state
from .decision import Decision


def prepare(connection: Connection) -> tuple[list[str], Begun]:
    """Bring the job's positions into order; return what was done, a line each, and where it begins.

    Raises JobError when only a person can decide; nothing was changed then.
    """
    client, settings = connection.client, connection.settings
    found = snapshot.read(client, settings)
    ownership.verify_owner(connection, found)
    if connection.guarantee.in_transaction:
        fence.raise_fence(connection, found)
        found = snapshot.read(client, settings)
    decided = decide(connection, found)
    decision.apply(client, settings, found.queues, decided)
    notes = [*decided.notes, *ownership.mark(connection, snapshot.read(client, settings))]
    return notes, Begun(tuple(queue.id for queue in found.queues), decided.starts)


def preview(connection: Connection) -> tuple[str, ...]:
    """Return what prepare() would do now, a line each, and do none of it. Raises as it would."""
    found = snapshot.read(connection.client, connection.settings)
    ownership.verify_owner(connection, found)
    return decide(connection, found).notes


def decide(connection: Connection, found: Snapshot) -> Decision:
    """Return the decision for these positions; reads and writes nothing.

    Raises JobError for offsets that no crash leaves behind, for a queue that is shorter than them,
    and, under ``on_data_loss = "fail"``, for rows trimmed before they were read.
    """
    job, settings = connection.job, connection.settings
    if found.checkpoint.last is None and found.checkpoint.committed:
        raise JobError(
            f"{settings.checkpoint} has a commit log and no offset log",
            "restore the checkpoint, or use `rewind`, which starts a new one",
        )
    lost = state.lost_checkpoint(found, settings, job)
    state.verify_partitions(found, job)
    start = connection.guarantee.resume(found)
    decided = Decision(uncommit=start.uncommit, commit=start.commit, notes=(*lost, *start.notes))
    has_run = found.checkpoint.last is not None or found.consumer_marker is not None
    starts, gaps = [], []
    for queue, resumed in zip(found.queues, start.rows, strict=True):
        if has_run or queue.consumed:
            rows, lost_rows = _continued(queue, dict(resumed))
            gaps += lost_rows
        else:
            rows = _first_rows(queue, settings)
            decided = _begun(queue, rows, settings, decided)
        starts.append(rows)
    decided = replace(decided, starts=tuple(starts))
    if not gaps:
        return decided
    if settings.on_data_loss == "fail":
        raise JobError(
            "; ".join(gaps),
            'they cannot be recovered; set on_data_loss = "skip" to continue after the gap',
        )
    return _skipped(found, starts, replace(decided, notes=(*decided.notes, *gaps)))


def _continued(queue: Queue, rows: dict[int, int]) -> tuple[dict[int, int], list[str]]:
    """Return where each partition continues, after the rows that were trimmed, and those gaps."""
    gaps = []
    bounds = dict(enumerate(zip(queue.lower, queue.upper, strict=True)))
    for partition in sorted({*rows, *bounds}):
        row = rows.setdefault(partition, 0)
        lower, upper = bounds.get(partition, (0, 0))
        if row > upper:
            raise JobError(
                f"queue {queue.path}, partition {partition} ends at row {upper}, the job has "
                f"read up to row {row}: the queue or its tablets were recreated",
                "configure a new consumer and a new checkpoint",
            )
        if row < lower:
            gaps.append(
                f"{lower - row} rows of {queue.path} were trimmed before this job read them: "
                f"partition {partition}, rows {row} to {lower - 1}"
            )
            rows[partition] = lower
    return rows, gaps


def _first_rows(queue: Queue, settings: Settings) -> dict[int, int]:
    return dict(enumerate(queue.lower if settings.start_from == "earliest" else queue.upper))


def _begun(queue: Queue, rows: dict[int, int], settings: Settings, decided: Decision) -> Decision:
    """Return the decision with a new consumer placed at ``rows``."""
    moves = {(queue.path, partition): row for partition, row in rows.items() if row}
    note = (
        f"new consumer: {queue.path} from its {settings.start_from} rows, by partition "
        f"{', '.join(map(str, rows.values()))}"
    )
    return replace(decided, advance={**decided.advance, **moves}, notes=(*decided.notes, note))


def _skipped(found: Snapshot, starts: Rows, decided: Decision) -> Decision:
    """Return the decision with consumer and checkpoint moved past the gap, for all partitions.

    The checkpoint is moved and not dropped: it may hold state, and its other partitions are exact
    where the consumer's may be a batch behind.
    """
    moves = {
        (queue.path, partition): row
        for queue, start in zip(found.queues, starts, strict=True)
        for partition, row in start.items()
    }
    last, done, unplan = found.checkpoint.last, found.checkpoint.done, None
    if decided.uncommit is not None:
        done, unplan = found.checkpoint.before_last, decided.uncommit
    elif last is not None and not found.checkpoint.is_last_committed:
        unplan = last.batch
    rebase = (done, starts) if done is not None else None
    return replace(decided, advance={**decided.advance, **moves}, unplan=unplan, rebase=rebase)
