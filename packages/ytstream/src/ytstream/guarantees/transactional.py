"""Exactly once, any transformation: output rows and offsets in one tablet transaction per batch.

SPYT opens the transaction, its tasks write into it, and the consumer moves in it. SPYT leaves three
gaps. A task that Spark starts again would write its rows a second time into the same transaction,
and a batch may be too large for a tablet: this class closes these two. And SPYT commits the
transaction AFTER Spark has written ``commits/N`` (MicroBatchExecutionDecorators.runBatch): a driver
that dies in between leaves a batch that Spark counts as done and that never happened; when only the
reply was lost, SPYT deletes ``commits/N`` of a batch that did happen. The head of the ledger is
written in that very transaction (ledger/batch_commit.py), so it shows which of the two it was
(recovery/start.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import Guarantee
from ..schema.columns import Column, key_of
from ..settings.job_settings import Settings
from . import sizing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FENCED = "fence: a task was started a second time"
"""What the fence says: the batch has failed, and the next start runs it again."""
FENCE = (
    "(monotonically_increasing_id() & 8589934591) > 0 or "
    "isnull(assert_true(reflect('java.lang.Thread', 'currentThread') rlike "
    f"'task [0-9]+[.]0 in stage [0-9]+[.]0 ', '{FENCED}, its first "
    "attempt may have written rows; the micro-batch is aborted and runs again'))"
)
"""A task's thread is named "... task 3.0 in stage 7.0 (TID 9)": index.attempt, stage.attempt
(Spark, TaskSetManager.resourceOffer and Executor.TaskRunner). Read inside the task, before its
first row, it fences off every second attempt, however Spark came to start it: retry, speculation,
lost executor, repeated stage. No row of a second attempt ever reaches the writer. It costs more
than to write a row, so later rows, by the lower 33 bits of their ids, pass."""


class Transactional(Guarantee):
    """See the module."""

    name = "transactional"
    in_transaction = True

    def key(self, queues: int) -> None:
        """Return None: outputs have the keys that tables.py gives them, if any."""

    def admit(self, rows: DataFrame, settings: Settings) -> None:
        """Raise JobError when this driver was submitted with a job proxy of its own."""
        if os.environ.get("SPARK_YT_RPC_JOB_PROXY_ENABLED", "false").lower() != "false":
            raise JobError(
                "the driver was submitted with its own RPC job proxy, which executors cannot reach",
                "submit with --conf spark.ytsaurus.rpc.job.proxy.enabled=false, as `make submit` "
                "does",
                code=ErrorCode.SPARK_CONF,
            )

    def fenced(self, rows: DataFrame) -> DataFrame:
        """Return the rows behind a fence that passes first attempts of tasks and fails others."""
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


def _batch_rows(settings: Settings, tablets: Mapping[str, int]) -> int:
    return settings.max_rows_per_partition * sum(tablets.values())
