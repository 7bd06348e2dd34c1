"""Exactly once, any transformation: output rows and offsets in one tablet transaction per batch.

SPYT opens the transaction, its tasks write into it, and the consumer moves in it. SPYT leaves three
gaps, which this class closes. A task that Spark starts again would write its rows a second time
into the same transaction. A batch may be too large for a tablet. And SPYT commits the transaction
AFTER Spark has written ``commits/N`` (MicroBatchExecutionDecorators.runBatch): a driver that dies
in between leaves a batch that Spark counts as done and that never happened. A backlogged job then
stalls, one with several queues loses rows, a stateful one counts rows twice. When the transaction
did commit but its reply was lost, SPYT deletes ``commits/N`` of a batch that did happen. The
consumer moves in that very transaction, so it shows which of the two it was.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..columns import Column, key_of
from ..config import Settings
from ..errors import JobError
from ..positions import Planned, Rows, Snapshot, Start
from . import sizing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: A task's thread is named "... task 3.0 in stage 7.0 (TID 9)": index.attempt, stage.attempt
#: (Spark, TaskSetManager.resourceOffer and Executor.TaskRunner). Read inside the task, before its
#: first row, it fences off every second attempt, however Spark came to start it: retry,
#: speculation, lost executor, repeated stage. No row of a second attempt ever reaches the writer.
FENCE = (
    "isnull(assert_true(reflect('java.lang.Thread', 'currentThread') rlike "
    "'task [0-9]+[.]0 in stage [0-9]+[.]0 ', 'fence: a task was started a second time, its first "
    "attempt may have written rows; the micro-batch is aborted and runs again'))"
)


class Transactional:
    """See the module."""

    name = "transactional"
    in_transaction = True
    #: None: no refusal of this guarantee can be waived.
    acceptable: Sequence[str] = ()
    position: Mapping[str, str] = {}

    def key(self, queues: int) -> tuple[str, ...]:
        """Return no column: outputs have the keys that tables.py gives them."""
        return ()

    def admit(self, rows: DataFrame, settings: Settings) -> DataFrame:
        """Return the rows behind a fence that passes first attempts of tasks and fails others.

        Raises JobError when this driver was submitted with a job proxy of its own.
        """
        if os.environ.get("SPARK_YT_RPC_JOB_PROXY_ENABLED", "false").lower() != "false":
            raise JobError(
                "the driver was submitted with its own RPC job proxy, which executors cannot reach",
                "submit with --conf spark.ytsaurus.rpc.job.proxy.enabled=false, as `make submit` "
                "does",
            )
        return rows.filter(FENCE)

    def output_attributes(
        self, columns: Sequence[Column], settings: Settings, tablets: Mapping[str, int]
    ) -> dict[str, Any]:
        """Give an ordered output enough tablets for the largest batch."""
        if key_of(columns):
            return {}
        return {"tablet_count": sizing.default_tablets(_batch_rows(settings, tablets))}

    def write_batch(self, settings: Settings, tablets: Mapping[str, int]) -> int:
        """Return a small number, since each call goes whole to one tablet at random."""
        return sizing.default_write_batch(_batch_rows(settings, tablets))

    def sizing_problem(
        self, settings: Settings, tablets: Mapping[str, int], output_tablets: int
    ) -> str | None:
        """Compare the largest batch with the limit of the output's tablets."""
        write = settings.dyn_batch_size or self.write_batch(settings, tablets)
        return sizing.problem(_batch_rows(settings, tablets), write, output_tablets)

    def resume(self, snapshot: Snapshot) -> Start:
        """Continue where the consumer is, and make the commit log agree with it.

        Raises JobError when the consumer is at neither end of the newest batch.
        """
        last, before = snapshot.checkpoint.last, snapshot.checkpoint.before_last
        is_logged = snapshot.checkpoint.is_last_committed
        consumed = [queue.consumed for queue in snapshot.queues]
        starts = before.ends if before is not None else snapshot.begun
        # An empty batch does not move the consumer, so nothing shows whether it committed. Leave it
        # out of the log; rerunning it is harmless.
        if last is None or _difference(last, last.ends, starts) is None:
            return Start(consumed)
        if _difference(last, consumed, last.ends) is None:
            if is_logged:
                return Start(consumed)
            note = (
                f"batch {last.batch} was committed on the cluster but missing from Spark's commit "
                "log: added, so it will not run again"
            )
            return Start(consumed, commit=last, notes=(note,))
        if moved := _difference(last, consumed, starts):
            index, partition, row, start = moved
            raise JobError(
                f"the consumer was moved: {snapshot.queues[index].path}, partition {partition} is "
                f"at row {row}, batch {last.batch} was to take it from {start} to "
                f"{last.ends[index][partition]}",
                "move it back, or use `rewind`, which starts a new checkpoint",
            )
        if not is_logged:
            return Start(consumed)
        note = (
            f"batch {last.batch} was in the commit log, but its transaction never committed: "
            "removed from the log; the batch will run again"
        )
        return Start(consumed, uncommit=last.batch, notes=(note,))

    def adopt(self, snapshot: Snapshot, former: str) -> dict[tuple[str, int], int]:
        """Move the consumer to the end of the checkpoint.

        Without transactions it is one batch behind; left there, SPYT would see "no new data" for
        ever. A batch that was cut off stays planned and runs again in a transaction: the rows that
        ``former`` had written of it stay too.
        """
        done = snapshot.checkpoint.done
        if done is None:
            return {}
        return {
            (queue.path, partition): end
            for queue, ends in zip(snapshot.queues, done.ends, strict=True)
            for partition, end in ends.items()
        }


def _batch_rows(settings: Settings, tablets: Mapping[str, int]) -> int:
    return settings.max_rows_per_partition * sum(tablets.values())


def _difference(last: Planned, found: Rows, wanted: Rows) -> tuple[int, int, int, int] | None:
    """Return a queue, a partition of the batch and both rows where ``found`` is not ``wanted``."""
    for index, ends in enumerate(last.ends):
        for partition in ends:
            row, other = found[index].get(partition, 0), wanted[index].get(partition, 0)
            if row != other:
                return index, partition, row, other
    return None
