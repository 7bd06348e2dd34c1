"""Our own reader, writer and commit (``jvm/``), or SPYT's: which one a job runs on, and its writes.

Both keep the guarantees: they read the ranges that SPYT's source plans, and write in the
transaction that SPYT's agent opens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ..schema.columns import Column
from ..settings.job_settings import OWN, SPYT, Settings
from .compile_java import (
    BACKLOG_CLOCK,
    DRIVER_FILES,
    EXPIRY,
    OBSERVED,
    OUTPUT,
    PACE,
    PIECES,
    REJECTED_ROWS,
    REPLAY,
    SOURCE,
    unavailable,
)
from .java import Java, class_name, each, jvm_of
from .spark_plan import execution_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_SPYTS = "yt"
"""What ``readStream.format()`` takes for SPYT's source."""
_READER = "Ranges"
"""The RDD of our source."""
_WRITE_BATCH = 50_000
"""SPYT's own rows per request (SparkYtConfiguration)."""


@dataclass(frozen=True)
class Connector:
    """What a job of a session reads and writes with."""

    name: str
    problem: str = ""
    """Why it is not the configured one; empty if it is."""

    @property
    def is_own(self) -> bool:
        """Whether it is our own, which can more."""
        return self.name == OWN

    @property
    def source(self) -> str:
        """What ``readStream.format()`` takes."""
        return SOURCE if self.is_own else _SPYTS


def in_use(spark: SparkSession, settings: Settings) -> Connector:
    """Return the connector that a job runs on."""
    if settings.connector == SPYT:
        return Connector(SPYT)
    problem = unavailable(spark)
    return Connector(SPYT if problem else OWN, problem)


def line(spark: SparkSession, settings: Settings) -> str:
    """Return the line that says which connector a job runs on."""
    connector = in_use(spark, settings)
    said = f"connector: {connector.name}"
    if connector.problem:
        said += f", since the job's own does not run here: {connector.problem}"
    if not connector.is_own:
        most = settings.max_rows_per_partition / settings.trigger_seconds
        said += f"; it reads at most {most:.0f} rows/s of each tablet"
        if settings.batch_seconds is not None:
            said += ", and batch_seconds has no effect"
    return said


def disk_uri(folder: str, spark: SparkSession, settings: Settings, java: Java) -> str:
    """Return the URI of a folder on the driver's disk, where a query writes its checkpoint.

    Our own file system starts no process for each file.
    """
    if not in_use(spark, settings).is_own:
        return f"file://{folder}"
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    return str(java[f"{DRIVER_FILES}.uri"](folder, configuration))


def set_pace(settings: Settings, rows: int, java: Java) -> None:
    """Let the next batches read up to so many rows of each partition; 0: as the settings say."""
    java[f"{PACE}.set"](settings.consumer, rows)


def skip_pauses(query: StreamingQuery, settings: Settings, java: Java) -> None:
    """Let the query's batches begin at once while rows wait that the last one was too small for.

    Called in a batch of the query. Only our own source says whether rows wait.
    """
    java[f"{BACKLOG_CLOCK}.set"](query._jsq.streamingQuery(), settings.consumer)


def observe_in_code(spark: SparkSession, ours: str, rejected: str) -> None:
    """Let queries that start from now on observe rows inside of generated code.

    That are the observations whose names begin with ``ours``, and ``rejected``: see
    ObservedExec.java. The session must be able to use the classes.
    """
    session = spark._jsparkSession.experimental()
    Java(jvm_of(spark))[f"{OBSERVED}.install"](session, ours, rejected)


def remove_expired_later(spark: SparkSession) -> None:
    """Let queries that start from now on go through the state of a deduplication less often.

    Their rows stay the same: see ExpiringStore.java. The session must be able to use the classes.
    """
    session = spark._jsparkSession
    Java(jvm_of(spark))[f"{EXPIRY}.install"](session, session.extensions())


@contextmanager
def begun_at(offsets: Mapping[str, str], java: Java) -> Iterator[None]:
    """Let queries begin at these offsets of Spark's log, by queue, and leave the consumers alone.

    Only our own reader can.
    """
    for queue, offset in offsets.items():
        java[f"{REPLAY}.begin"](queue, offset)
    try:
        yield
    finally:
        java[f"{REPLAY}.end"]()


def write(
    rows: DataFrame,
    path: str,
    columns: Sequence[Column],
    tablets: int,
    most: int | None,
    java: Java,
    deleted: str = "",
    *,
    is_exact: bool = False,
    rejected: Any = None,
) -> Any:
    """Write the rows into a table, in the transaction of this thread if there is one.

    Return what was added to sums (``jvm/Sums.java``); None for a table that adds up nothing. With
    ``is_exact`` it has each key.

    ``columns`` are the table's: no task asks the cluster for them. ``tablets`` of a table without a
    key get the rows in turn; 0 for a table with a key, where the key decides. A request has up to
    ``most`` rows for each tablet. A row that is true in the column ``deleted`` is deleted.
    ``rejected`` sends the rows that the tasks reject meanwhile: see rejected_rows().
    """
    return java[f"{OUTPUT}.write"](
        execution_of(rows).toRdd(), rows._jdf.schema(), path, java.schema(tuple(columns)),
        most or _WRITE_BATCH, tablets, deleted, is_exact, rejected,
    )  # fmt: skip


def rejected_rows(
    path: str, columns: Sequence[Column], queues: Sequence[str], reasons: Sequence[str],
    microseconds: int, java: Java,
) -> Any:  # fmt: skip
    """Return what sends the rows that tasks reject, with that time, while they write an output.

    In the batch's transaction alone; without one they come to the driver. A session must be able to
    use the classes.
    """
    names = json.dumps([[*queues], [*reasons]])
    schema = java.schema(tuple(columns))
    return java[REJECTED_ROWS](path, schema, names, microseconds, _WRITE_BATCH)


def write_pieces(
    rows: DataFrame, attributes: Mapping[str, Any], folder: str, transaction: str, by: str,
    seconds: int, bounds: tuple[int, int, int], most: int, handed: int, java: Java,
) -> str:  # fmt: skip
    """Write the rows of an archive under a master transaction; return the lines of Pieces.java.

    ``bounds``: when the oldest and the newest period begins, and when the last one ended that takes
    no row any more. ``handed``: how many bytes of rows all tasks leave to the driver. With
    either connector: SPYT's writer makes one table in ten requests and more.
    """
    return str(
        java[f"{PIECES}.write"](
            execution_of(rows).toRdd(), rows._jdf.schema(), java.node(dict(attributes)), folder,
            transaction, by, seconds, *bounds, most, handed,
        )
    )  # fmt: skip


def seconds_written(java: Java) -> float:
    """Return how long this thread's writes have waited for the cluster since the last call.

    Only our own connector knows: tasks compute their rows while they write them.
    """
    return float(java[f"{OUTPUT}.take"]()[1]) / 1e9


def gather(execution: Any, tasks: int) -> None:
    """Say that so many tasks read all ranges of a batch: each asks for its next ones ahead."""
    leaves = (leaf for leaf in each(execution.logical().collectLeaves()) if leaf.isStreaming())
    readers = [leaf.rdd() for leaf in leaves if class_name(leaf) == "LogicalRDD"]
    readers = [reader for reader in readers if class_name(reader) == _READER]
    counts = [int(reader.getNumPartitions()) for reader in readers]
    for reader, first in zip(readers, accumulate(counts, initial=0), strict=False):
        reader.gather(first, sum(counts), tasks)
