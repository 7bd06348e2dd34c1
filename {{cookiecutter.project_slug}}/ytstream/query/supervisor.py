"""Keeps the query running: one instance, recovery before every start, back-off, a graceful stop."""

import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError

from .. import provision
from ..cluster import explained, first_line
from ..errors import JobError, RestartableError
from ..job import Connection, Job
from ..log import RUNNING, say
from ..recovery import before_start
from ..recovery.epoch import Epoch
from ..recovery.lock import InstanceLock
from ..tablets import Tablets
from . import pipeline, reference
from .batch import Batch
from .monitor import Monitor
from .session import open_session
from .spark_errors import explained_spark
from .watch import Watch

_POLL_SECONDS = 0.2


def run(connection: Connection, lock: InstanceLock) -> None:
    """Stream until stopped. Raises JobError for a refusal, or when the query failed too often."""
    stop = threading.Event()
    _stop_on_signals(stop)
    with explained(connection.settings):
        connection = provision.sized(connection)
    say("starting Spark with SPYT (10 to 20 s)")
    spark = open_session(connection)
    _stop_on_signals(stop)  # again: PySpark has installed its own for SIGINT
    life = Life(connection, spark, Tablets(spark._jvm, connection.settings), lock, stop)
    try:
        supervise(connection.job, life.run, stop)
    finally:
        spark.stop()


def supervise(job: Job, one_query: Callable[[], None], stop: threading.Event) -> None:
    """Start queries until ``stop`` is set, with a pause after each failure.

    Raises JobError after the job's most failures within its period, and RestartableError when the
    batch that ``stop`` waited for fails.
    """
    failures: deque[float] = deque()
    while not stop.is_set():
        try:
            one_query()
        except RestartableError as error:
            if stop.is_set():  # its last batch failed: the next start runs it again
                raise
            now = time.monotonic()
            failures.append(now)
            while failures[0] < now - job.failure_period_seconds:
                failures.popleft()
            if len(failures) >= job.most_failures:
                raise JobError(
                    f"gave up after {len(failures)} failures in "
                    f"{job.failure_period_seconds / 60:.0f} minutes; the last: {error}",
                    "fix the cause and start again: committed rows are kept",
                ) from error
            pause = min(
                job.first_pause_seconds * 2 ** (len(failures) - 1), job.longest_pause_seconds
            )
            say(
                f"failure {len(failures)} of {job.most_failures}: {error}; starting again in "
                f"{pause:.0f} s"
            )
            stop.wait(pause)


@dataclass
class Life:
    """One query after the other, in one session and under one lock."""

    connection: Connection
    spark: SparkSession
    tablets: Tablets
    lock: InstanceLock
    stop: threading.Event
    #: Raised before every start.
    epoch: Epoch = field(default_factory=Epoch)
    #: The reference as it was read last: a running job does not end because it is unreadable.
    reference: DataFrame | None = None

    def run(self) -> None:
        """Run one query until stopped, or until the reference has to be read anew."""
        settings, job = self.connection.settings, self.connection.job
        if not self.lock.is_held:  # it may have been lost during the pause after a failure
            raise _lock_lost()
        with explained(settings):
            self.epoch, notes = before_start.prepare(self.connection, self.tablets, self.epoch)
        for note in notes:
            say(f"recovery: {note}")
        batch = Batch(self.connection, self.tablets, self.epoch)
        with explained(settings), explained_spark():
            rows = pipeline.rows_of(self.spark, self.connection, self.read_reference())
            query = pipeline.start(rows, batch)
        into = ", ".join(settings.outputs.values())
        say(f"{RUNNING}{self.epoch.number}: {', '.join(settings.queues)} -> {into}")
        monitor = Monitor(query, job.large_state_bytes)
        watch = Watch(self.connection, self.epoch, query)
        end = time.monotonic() + (settings.reference_refresh if job.reference else math.inf)
        try:
            while time.monotonic() < end and not self.stop.wait(_POLL_SECONDS):
                monitor.report()
                self._verify_alive(query, batch)
                watch.look(time.monotonic())
            _drain(query, batch, watch)
            monitor.report()
            if self.stop.is_set():
                say("stopped; the next start continues from here")
        finally:
            if query.isActive:
                query.stop()

    def read_reference(self) -> DataFrame | None:
        """Return the reference table as it is now; None for a job without one.

        Raises JobError when it cannot be used and was not read before.
        """
        try:
            self.reference = read_reference(self.spark, self.connection)
        except (YtError, OSError, JobError) as error:
            if self.reference is None:
                raise
            say(f"WARNING: continuing with the reference as it was read last: {first_line(error)}")
        return self.reference

    def _verify_alive(self, query: StreamingQuery, batch: Batch) -> None:
        if not query.isActive:
            _raise_failure(query, batch)
            raise RestartableError("the query ended by itself")
        if not self.lock.is_held:
            raise _lock_lost()


def read_reference(spark: SparkSession, connection: Connection) -> DataFrame | None:
    """Return the reference table as it is now; None for a job without one."""
    job, path = connection.job, connection.settings.reference
    if path is None:
        return None
    return reference.read(spark, connection.client, path, job.reference_columns, job.reference_rows)


def _raise_failure(query: StreamingQuery, batch: Batch) -> None:
    """Raise what ended the query, if anything did."""
    with explained_spark():
        if batch.failure is not None:
            raise batch.failure
        query.awaitTermination()


def _drain(query: StreamingQuery, batch: Batch, watch: Watch) -> None:
    """Let the running micro-batch finish, then stop. Raises what ended the query, if anything did.

    A trigger that begins in between spends its first milliseconds asking for the queues' ends.
    """
    with explained_spark():
        while query.isActive and query.status["isTriggerActive"]:
            watch.look(time.monotonic())
            time.sleep(_POLL_SECONDS)
    if not query.isActive:
        _raise_failure(query, batch)
    with explained_spark():
        query.stop()


def _stop_on_signals(stop: threading.Event) -> None:
    """Make SIGTERM and SIGINT set ``stop``; a second signal does not force a harder stop."""

    def handle(number: int, _frame: FrameType | None) -> None:
        if not stop.is_set():
            say(f"{signal.Signals(number).name}: finishing the micro-batch, then stopping")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _lock_lost() -> JobError:
    """Return the error of a process that may not be alone any more."""
    return JobError(
        "the instance lock was lost: the cluster did not answer pings",
        "another instance may run by now; start again once the cluster answers",
    )
