"""One micro-batch: written by SPYT's own sink, then audited before anything commits.

Spark calls ``Batch`` for each micro-batch (foreachBatch). In a transactional job SPYT has opened a
tablet transaction before that call and commits it after ``commits/N`` was written, whatever the
sink is (MicroBatchExecutionDecorators.runBatch); its sink class finds the transaction in a variable
of the thread. So an exception here leaves nothing of the batch.

SPYT reads a queue by row numbers and does not look at the rows' own: below the first row that is
left it takes as many later ones, without an error (YtQueueUtils). It writes where a consumer stands
without asking where it stood (``advanceConsumer`` without an old offset). Both are compared here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from spyt.version import __version__ as SPYT_VERSION
from yt.common import YtError

from .. import confs
from ..cluster import cluster_name, first_line
from ..errors import JobError, RestartableError
from ..guarantees.one_to_one import node_name, nodes
from ..job import Connection
from ..positions import Begun, Rows
from ..recovery import snapshot
from .source import observed_name
from .spark_errors import cause

_START_SECONDS = 60.0


@dataclass(frozen=True)
class Range:
    """The rows of one partition that a batch has to read: from ``first`` to before ``end``."""

    first: int
    end: int

    @property
    def count(self) -> int:
        """How many rows these are."""
        return self.end - self.first

    @property
    def sum(self) -> int:
        """The sum of their row numbers."""
        return (self.first + self.end - 1) * self.count // 2


@dataclass
class Batch:
    """The function that Spark calls with the rows and the number of each micro-batch.

    Without ``begun`` it writes the rows and does not audit them.
    """

    connection: Connection
    #: Where the next batch begins; None: unknown.
    begun: Begun | None
    #: Queues whose rows the plan does not count once.
    uncounted: frozenset[str] = frozenset()
    #: Whether this process still holds the instance lock.
    is_alone: Callable[[], bool] = lambda: True
    #: The query that calls this function, known once it was started.
    query: Future[StreamingQuery] = field(default_factory=Future)
    #: What ended the batch: Spark's own report of it is a Java trace around a Python trace.
    failure: Exception | None = None

    @cached_property
    def cluster(self) -> str:
        """The cluster's name, asked once and not for each batch."""
        return cluster_name(self.connection.client)

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Write the batch, or raise: then SPYT aborts the transaction and Spark ends the query."""
        try:
            self._run(rows, number)
        except (YtError, OSError) as error:
            self.failure = RestartableError(f"batch {number}: {first_line(error)}")
        except Exception as error:
            self.failure = error
        if self.failure is not None:
            raise RuntimeError(f"batch {number} failed: {cause(str(self.failure))}")

    def _run(self, rows: DataFrame, number: int) -> None:
        planned: Sequence[Mapping[int, Range]] = ()
        if self.begun is not None:
            execution = self.query.result(_START_SECONDS)._jsq.streamingQuery()
            planned = ranges(number, self.begun.rows, ends_of(execution, number))
            verify_start(self.connection, self.cluster, number, self.begun)
        write_outputs(rows, self.connection, number)
        if self.begun is not None:
            metrics = metrics_of(execution)
            for path in self.uncounted:
                metrics.pop(observed_name(path), None)
            audit(self.connection, number, self.begun, planned, metrics)
            self.begun = replace(self.begun, rows=moved(self.begun.rows, planned))
        if not self.is_alone():
            raise lock_lost()


def write_outputs(rows: DataFrame, connection: Connection, number: int) -> None:
    """Write the rows through SPYT's sink, into the batch's transaction if it has one.

    A sink for each call: one that is kept skips batch numbers up to its last without an error, and
    numbers begin at 0 again with a new checkpoint (YtStreamingSink.addBatch). Raises JobError when
    SPYT has opened no transaction for a guarantee that needs it.
    """
    spark = rows.sparkSession
    context = _jvm(spark).tech.ytsaurus.spyt.streaming.YtStreamingTransactionContext.get()
    if connection.guarantee.in_transaction and context.isEmpty():
        raise JobError(
            f"SPYT has opened no transaction for batch {number}",
            "start through `python -m`, make or `make submit`; `check` verifies SPYT's patch",
        )
    _sink(spark, connection).addBatch(number, rows._jdf)


def verify_sink(spark: SparkSession, connection: Connection) -> None:
    """Raise JobError unless SPYT's sink and its transaction context are as this module calls them.

    Neither is documented, so another SPYT may not have them.
    """
    try:
        _sink(spark, connection)
        _jvm(spark).tech.ytsaurus.spyt.streaming.YtStreamingTransactionContext.get().isEmpty()
    except (Py4JError, TypeError) as error:
        raise JobError(
            f"SPYT {SPYT_VERSION} has another sink than this runtime calls: {first_line(error)}",
            "use the SPYT that pyproject.toml pins, or a version of this template made for yours",
        ) from error


def _sink(spark: SparkSession, connection: Connection) -> Any:
    jvm, path = _jvm(spark), connection.settings.output
    parameters = {"path": path, **confs.filled(iter(confs.SINK), connection.values)}
    return jvm.tech.ytsaurus.spyt.streaming.YtStreamingSink(
        spark._jsparkSession.sqlContext(),
        path,
        jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(parameters),
    )


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def ends_of(execution: Any, number: int) -> list[dict[int, int]]:
    """Return where each queue's partitions end after the batch, by Spark's offset log.

    The log keeps its newest entries in memory (Spark, HDFSMetadataLog), so this is no request.
    """
    offsets = execution.offsetLog().get(number).get().offsets()
    ends = []
    for index in range(offsets.size()):
        offset = offsets.apply(index)  # empty for a queue that has not had a row yet
        partitions = json.loads(offset.get().json())["partitions"] if offset.isDefined() else {}
        ends.append({int(partition): last + 1 for partition, last in partitions.items()})
    return ends


def ranges(number: int, begun: Rows, ends: Rows) -> list[dict[int, Range]]:
    """Return the rows that the batch has to read, by queue and partition; none is left out.

    Raises RestartableError for a batch that ends before it begins.
    """
    found = []
    for starts, wanted in zip(begun, ends, strict=True):
        partitions = {
            partition: Range(starts.get(partition, 0), end) for partition, end in wanted.items()
        }
        if wrong := [f"{p}: {rows}" for p, rows in partitions.items() if rows.count < 0]:
            raise RestartableError(
                f"batch {number} was planned to end before its first row, partition {wrong[0]}"
            )
        found.append({partition: rows for partition, rows in partitions.items() if rows.count})
    return found


def moved(begun: Rows, planned: Sequence[Mapping[int, Range]]) -> list[Mapping[int, int]]:
    """Return where the next batch begins."""
    return [
        {**starts, **{partition: rows.end for partition, rows in partitions.items()}}
        for starts, partitions in zip(begun, planned, strict=True)
    ]


def verify_start(connection: Connection, cluster: str, number: int, begun: Begun) -> None:
    """Raise RestartableError unless the consumer stands where the batch begins.

    Read after the transaction was opened: a consumer that moves later is a conflict at its commit.
    Only the transaction of a transactional job moves it in step with the batches.
    """
    if not connection.guarantee.in_transaction:
        return
    client, settings = connection.client, connection.settings
    for path, starts in zip(settings.queues, begun.rows, strict=True):
        found = snapshot.consumed(client, cluster, settings.consumer, path)
        for partition in sorted({*found, *starts}):
            row, first = found.get(partition, 0), starts.get(partition, 0)
            if row != first:
                raise RestartableError(
                    f"batch {number} begins at row {first} of {path}, partition {partition}, but "
                    f"the consumer is at row {row}: something else moved it"
                )


def audit(
    connection: Connection,
    number: int,
    begun: Begun,
    planned: Sequence[Mapping[int, Range]],
    metrics: Mapping[str, tuple[int, int | None]],
) -> None:
    """Raise RestartableError unless the batch has read the rows that were planned.

    The next start then says which rows are missing, and heeds ``on_data_loss``. ``metrics`` maps
    the name of a queue's observation to the number of rows and the sum of their row numbers; a
    queue that is absent there was not counted.
    """
    client = connection.client
    for path, id_, partitions in zip(connection.settings.queues, begun.ids, planned, strict=True):
        if str(client.get(f"{path}/@id")) != id_:
            raise RestartableError(f"{path} was dropped and recreated before batch {number} ended")
        wanted = sum(rows.count for rows in partitions.values())
        seen = metrics.get(observed_name(path))
        if not wanted or seen == (wanted, sum(rows.sum for rows in partitions.values())):
            continue
        # Trimming only grows, so a look after the reading is exact.
        infos = client.get_tablet_infos(path, list(partitions))["tablets"]
        for (partition, rows), info in zip(partitions.items(), infos, strict=True):
            if int(info["trimmed_row_count"]) > rows.first:
                raise RestartableError(
                    f"{path}, partition {partition} was trimmed to row "
                    f"{info['trimmed_row_count']} while batch {number} read from row {rows.first}"
                )
        # More rows than planned: Spark has computed a part a second time, after a lost executor.
        if seen is not None and seen[1] is not None and seen[0] <= wanted:
            raise RestartableError(
                f"batch {number} read {seen[0]} rows of {path}, planned were {wanted}, or others"
            )


def metrics_of(execution: Any) -> dict[str, tuple[int, int | None]]:
    """Return what the batch's plan observed: name -> rows, and the sum of their row numbers."""
    metrics = execution.lastExecution().observedMetrics()
    names = metrics.keys().iterator()
    found = {}
    while names.hasNext():
        name = str(names.next())
        row = metrics.apply(name)
        if name.startswith(observed_name("")):
            found[name] = (int(row.get(0)), None if row.isNullAt(1) else int(row.get(1)))
    return found


def uncounted(rows: DataFrame, queues: Sequence[str]) -> frozenset[str]:
    """Return the queues that the plan does not read exactly once: their counts mean nothing."""
    plan = rows._jdf.queryExecution().analyzed()
    names = [str(node.name()) for node in nodes(plan) if node_name(node) == "CollectMetrics"]
    return frozenset(path for path in queues if names.count(observed_name(path)) != 1)


def lock_lost() -> JobError:
    """Return the error of a process that may not be alone any more."""
    return JobError(
        "the instance lock was lost: the cluster did not answer pings",
        "another instance may run by now; start again once the cluster answers",
    )
