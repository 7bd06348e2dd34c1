"""Where each queue goes on, with transactions: the consumer is the truth.

SPYT commits the batch's tablet transaction, with the output rows and the consumer in it, AFTER
Spark has written ``commits/N`` (MicroBatchExecutionDecorators.runBatch). A driver that dies in
between leaves a batch that Spark counts as done and that never happened: a backlogged job stalls,
one with several queues loses rows, a stateful one counts rows twice. When the transaction did
commit but its reply was lost, SPYT deletes ``commits/N`` of a batch that did happen. The consumer
tells which: it moves in that very transaction.
"""

from collections.abc import Mapping, Sequence

from .checkpoint import Planned
from .errors import JobError
from .positions import Positions
from .repairs import Decision

#: Per queue: partition -> row.
Ends = Sequence[Mapping[int, int]]


def resume(positions: Positions, decision: Decision) -> list[Mapping[int, int]]:
    """The first row of the next batch, by queue and partition; a partition never read is absent.

    Raises JobError when the consumer stands at neither end of the newest batch.
    """
    queues, last = positions.queues, positions.checkpoint.last
    before, is_logged = positions.checkpoint.before_last, positions.checkpoint.is_last_committed
    consumed = [queue.consumed for queue in queues]
    starts = before.ends if before is not None else positions.begun
    # A batch without rows leaves no trace in the consumer: not entered in the log, it runs again.
    if last is None or _difference(last, last.ends, starts) is None:
        pass
    elif _difference(last, consumed, last.ends) is None:
        if not is_logged:
            decision.commit = last
            decision.notes.append(
                f"the transaction of batch {last.batch} committed, but the commit log did not say "
                "so: entered, it does not run again"
            )
    elif moved := _difference(last, consumed, starts):
        index, partition, row, start = moved
        raise JobError(
            f"the consumer was moved: {queues[index].path}, partition {partition} is at row {row}, "
            f"batch {last.batch} was to take it from {start} to {last.ends[index][partition]}",
            "move it back, or use `rewind`, which starts a new checkpoint",
        )
    elif is_logged:
        decision.uncommit = last.batch
        decision.notes.append(
            f"batch {last.batch} was in the commit log, but its transaction never committed: "
            "taken out of the log, it runs again"
        )
    return consumed


def _difference(last: Planned, found: Ends, wanted: Ends) -> tuple[int, int, int, int] | None:
    """A queue, a partition of the batch, and both rows, where ``found`` is not at ``wanted``."""
    for index, ends in enumerate(last.ends):
        for partition in ends:
            row, other = found[index].get(partition, 0), wanted[index].get(partition, 0)
            if row != other:
                return index, partition, row, other
    return None


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
