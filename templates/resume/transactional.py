"""Where each queue goes on, with transactions: the consumer is the truth.

SPYT commits the batch's tablet transaction, with the output rows and the consumer in it, AFTER
Spark has written ``commits/N`` (MicroBatchExecutionDecorators.runBatch). A driver that dies in
between leaves a batch that Spark counts as done and that never happened: a backlogged job stalls
for ever, a job with several queues loses rows, a stateful one counts rows twice. When the
transaction did commit but its reply was lost, SPYT deletes ``commits/N`` of a batch that did
happen. Comparing the consumer with the offset log tells which: the consumer moves in that very
transaction.
"""

from collections.abc import Mapping

from .checkpoint import Planned
from .errors import JobError
from .positions import Positions, Queue
from .repairs import Decision


def resume(positions: Positions, decision: Decision) -> list[Mapping[int, int]]:
    """The first row of the next batch, by queue and partition; a partition never read is absent.

    Puts what the commit log needs into ``decision``. Raises JobError when the consumer stands at
    neither end of the newest batch.
    """
    checkpoint, queues = positions.checkpoint, positions.queues
    last, is_logged = checkpoint.last, checkpoint.is_last_committed
    if last is not None and _stands_at(queues, last):
        if not is_logged:
            decision.commit = last
            decision.notes.append(
                f"the transaction of batch {last.batch} committed, but the commit log did not say "
                "so: entered, it does not run again"
            )
    elif last is not None:
        _refuse_elsewhere(queues, last, checkpoint.before_last)
        if is_logged:
            decision.uncommit = last.batch
            decision.notes.append(
                f"batch {last.batch} was in the commit log, but its transaction never committed: "
                "taken out of the log, it runs again"
            )
    return [queue.consumed for queue in queues]


def _stands_at(queues: tuple[Queue, ...], planned: Planned) -> bool:
    return all(
        queue.consumed.get(partition, 0) == end
        for queue, ends in zip(queues, planned.ends, strict=True)
        for partition, end in ends.items()
    )


def _refuse_elsewhere(queues: tuple[Queue, ...], last: Planned, before: Planned | None) -> None:
    """Raise JobError unless the consumer is where ``last`` leaves it that did not happen."""
    for index, queue in enumerate(queues):
        for partition, end in last.ends[index].items():
            row = queue.consumed.get(partition, 0)
            # Before batch 0 the consumer itself is the only record of where the job began.
            start = before.ends[index].get(partition, 0) if before is not None else min(row, end)
            if row != start:
                raise JobError(
                    f"the consumer was moved: {queue.path}, partition {partition} is at row {row}, "
                    f"batch {last.batch} was to take it from {start} to {end}",
                    "move it back, or use `rewind`, which starts a new checkpoint",
                )


def adopt(positions: Positions, former: str) -> dict[tuple[str, int], int]:
    """Where the consumer has to be before this guarantee takes over from ``former``.

    Without transactions the consumer is one batch behind the checkpoint; left there, SPYT would see
    "no new data" for ever. A batch that was cut off stays planned and runs again in a transaction:
    what ``former`` had written of it by then stays too.
    """
    del former
    done = positions.checkpoint.done
    if done is None:
        return {}
    return {
        (queue.path, partition): end
        for queue, ends in zip(positions.queues, done.ends, strict=True)
        for partition, end in ends.items()
    }
