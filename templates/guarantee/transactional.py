"""Exactly once, any transformation: output rows and offsets in one tablet transaction per batch.

SPYT opens the transaction, its tasks write into it, and the consumer moves in it. What SPYT leaves
open is closed here and in resume.py: a task that Spark starts again would write its rows a second
time into the same transaction, and a batch may be too large for a tablet.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from . import sizing
from .errors import JobError
from .schema import Column
from .settings import Settings

NAME = "transactional"

#: What `accept` may name: nothing, no refusal can be justified here.
ACCEPTABLE: Sequence[str] = ()

#: What the guarantee itself adds to the rows and to the output: nothing.
POSITION: Mapping[str, str] = {}
KEY: Sequence[Column] = ()
KEY_COLUMNS: Sequence[str] = ()

CONFS: Mapping[str, str] = {
    # Output rows and consumer offsets in one transaction per micro-batch (SPYT >= 2.11.0).
    "spark.yt.streaming.transactional": "true",
    # A tablet transaction lives on one proxy that all tasks must reach; the driver's own job proxy
    # is not. `make submit` gives it, since the driver's environment is fixed there.
    "spark.ytsaurus.rpc.job.proxy.enabled": "false",
    # A failed attempt has sent the rows it had buffered (YtStreamingSink closes its writer in
    # `finally`), so the batch must fail with it.
    "spark.task.maxFailures": "1",
    # A fetch failure runs a stage again without counting as a task failure.
    "spark.stage.maxConsecutiveAttempts": "1",
    # Tasks of a decommissioned executor run again without counting as failures.
    "spark.dynamicAllocation.enabled": "false",
    # A batch without rows, which Spark runs to write closed windows, moves no consumer: after a
    # crash nobody could tell whether its transaction was lost. Windows wait for the next row.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}

#: A task's thread is named "... task 3.0 in stage 7.0 (TID 9)": index.attempt, stage.attempt
#: (Spark, TaskSetManager.resourceOffer and Executor.TaskRunner). Read inside the task, before its
#: first row, it fences off every second attempt, however Spark came to start it: retry,
#: speculation, lost executor, repeated stage. There is no window: the rows of such an attempt never
#: reach the writer.
_FENCE = (
    "isnull(assert_true(reflect('java.lang.Thread', 'currentThread') rlike "
    "'task [0-9]+[.]0 in stage [0-9]+[.]0 ', 'fence: a task was started a second time, its first "
    "attempt may have written rows; the micro-batch is aborted and runs again'))"
)


def admit(rows: DataFrame, _settings: Settings) -> DataFrame:
    """The rows behind a fence that lets first attempts of tasks pass and fails all others.

    Raises JobError when this driver was submitted with a job proxy of its own.
    """
    if os.environ.get("SPARK_YT_RPC_JOB_PROXY_ENABLED", "false").lower() != "false":
        raise JobError(
            "the driver was submitted with its own RPC job proxy, which executors cannot reach",
            "submit with --conf spark.ytsaurus.rpc.job.proxy.enabled=false, as `make submit` does",
        )
    return rows.filter(F.expr(_FENCE))


def output_attributes(settings: Settings, tablets: Mapping[str, int]) -> dict[str, Any]:
    """Attributes of a new output table: ordered, with tablets enough for the largest batch."""
    return {"tablet_count": sizing.default_tablets(_batch_rows(settings, tablets))}


def write_batch(settings: Settings, tablets: Mapping[str, int]) -> int:
    """Rows per ``modify_rows``: small, since each call goes whole to one tablet at random."""
    return sizing.default_write_batch(_batch_rows(settings, tablets))


def sizing_problem(
    settings: Settings, tablets: Mapping[str, int], output_tablets: int
) -> str | None:
    """Why batches of this size could hit the limit of a tablet; None when they cannot."""
    write = settings.dyn_batch_size or write_batch(settings, tablets)
    return sizing.problem(_batch_rows(settings, tablets), write, output_tablets)


def _batch_rows(settings: Settings, tablets: Mapping[str, int]) -> int:
    return settings.max_rows_per_partition * sum(tablets.values())
