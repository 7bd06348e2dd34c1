"""Keeps the query running: recovery before every start, back-off, outages, a graceful stop."""

import math
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import FrameType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError

from ..cluster import account_usage
from ..cluster.client import Client, connect, explained, first_line
from ..cluster.mounting import closed, verify_mounted
from ..connector import choose_connector
from ..connector.java import jvm_of
from ..connector.tablet_transactions import Tablets
from ..errors import (
    FullAccountError,
    JobError,
    OutageError,
    RestartableError,
    StalledError,
    SupersededError,
    UnmountedError,
    code_of,
)
from ..errors.error_codes import ErrorCode
from ..instance.lock import own_transaction
from ..instance.stop_request import FAILED_PREFIX, tell_end
from ..job import Job, JobContext
from ..ledger import batch_history
from ..ledger.ledger_rows import Head, limit_of
from ..ledger.offsets import Queue
from ..ledger.positions import read_head
from ..log import Event, GrowthThresholds, say, warn
from ..outputs.tablet_overflow import TabletOverflow, judged, overflow_of
from ..provisioning import job_objects
from ..provisioning.capacity import CapacityCheck
from ..recovery import start, state_check
from ..recovery.epoch import Epoch
from ..sealing.completeness import CompletenessWriter
from ..spark.local_checkpoint import explained_space
from ..spark.session import STARTING, close, open_session
from ..spark.spark_errors import cause, explained_spark
from . import pace as paces
from . import pipeline, reference_table
from .batch import Batch, ClosedError
from .batch_outcome import failed_of, last_report
from .idle_signal import IdleSignal
from .operation_note import OperationNote
from .outage_log import OutageLog
from .pace import Pace
from .progress import ProgressMonitor
from .references import JobReferences
from .stall_watchdog import LOOK_SECONDS, Watchdog, finished_tasks
from .stop_signal import StopSignal

_POLL_SECONDS = 0.2
_MOST_DOUBLINGS = 30
STOPPED = "stopped; the next start continues from here"
STOPPED_IN_A_BATCH = "stopped in a batch that hung; the next start runs it again"


def run(context: JobContext, session: ExitStack) -> None:
    """Stream until stopped; ``session`` closes Spark at its end.

    Raises JobError for a refusal, or when the query failed too often.
    """
    stop = StopSignal()
    _stop_on_signals(stop)
    with explained(context.settings):
        context = job_objects.sized(context)
        start.preview(context)  # what it would refuse after Spark's start
        context = state_check.with_state_store(context)
    say(STARTING)
    connecting: list[Tablets] = []

    def connect(jvm: Any) -> None:
        """Let the client of the cluster start next to Spark: recovery needs it."""
        connecting.append(tablets := Tablets(jvm, context.settings))
        tablets.connect_ahead()

    spark = open_session(context, begun=connect)
    _stop_on_signals(stop)  # again: PySpark has installed its own for SIGINT
    say(choose_connector.line(spark, context.settings))
    tablets = connecting[0] if connecting else Tablets(jvm_of(spark), context.settings)
    runner = QueryRunner(context, spark, tablets, stop)
    session.callback(close, spark, runner.tablets.beside)
    how, code = STOPPED, ""
    try:
        how = supervise(context.job, runner, stop)
        say(how)
    except BaseException as error:
        code = code_of(error)
        how = f"{FAILED_PREFIX}{_in_one_line(error)}"
        raise
    finally:
        tell_end(context, runner.epoch, how, code)


def _in_one_line(error: BaseException) -> str:
    """Return what an error says first, with the first finding of a list."""
    first, *others = (str(error) or type(error).__name__).splitlines()
    return f"{first} {others[0].strip()}" if others and first.endswith(":") else first


@dataclass
class QueryRunner:
    """Runs one query after the other in one session of Spark."""

    context: JobContext
    spark: SparkSession
    tablets: Tablets
    stop: StopSignal
    epoch: Epoch = field(default_factory=Epoch)
    """Raised before every start."""
    has_progressed: bool = False
    """Whether the last query has finished a batch."""
    is_idle: bool = False
    """Whether the last query had nothing to read when it ended."""
    reference: DataFrame | None = None
    """The reference as it was read last: a running job does not end because it is unreadable."""
    references: JobReferences | None = None
    """What lookup() reads, of the last query."""
    refused: TabletOverflow | None = None
    """A batch that the cluster has refused; the next query reads its keys."""
    rows_at_first: int = 0
    """How many rows of a partition the next query's first batch may read; 0: the ledger says it."""
    queues: tuple[Queue, ...] = ()
    """The queues as the last start has found them."""
    said: GrowthThresholds = field(default_factory=GrowthThresholds)
    """What the log has said of figures that grow."""
    first_look: IdleSignal | None = None
    """Tells `submit` that nothing was there to read; None until the first query runs."""
    teller: CompletenessWriter = field(default_factory=CompletenessWriter)
    """Writes into the outputs until when they are complete."""
    impatient: Client | None = None
    """Tries once, so that this process hears of an outage, and a stop, soon."""

    def run(self) -> None:
        """Run one query until stopped, or until the reference must be read again.

        Every other end of a query is an exception, and this is where it is judged: JobError for
        what only a person can fix, OutageError, RestartableError for the rest.
        """
        self.has_progressed = self.is_idle = False
        try:
            with explained(self.context.settings), explained_spark():
                self._start()
        except FullAccountError as error:
            raise self._with_usage(error) from error
        except (JobError, RestartableError) as error:
            if not isinstance(error, OutageError):  # perhaps the batch was too large
                self.rows_at_first = paces.after_failure(self.rows_at_first)
            is_away = isinstance(error, OutageError) and not isinstance(error, UnmountedError)
            if not (is_away or isinstance(error, SupersededError)):
                self._verify_objects()  # what it says explains what it has caused
            raise

    def _with_usage(self, error: FullAccountError) -> FullAccountError:
        """Return the error with what is used of the account, if the cluster tells."""
        client = self.impatient or self.context.client
        with suppress(YtError, OSError):
            found = [*account_usage.usage(client, error.account)] if error.account else []
            if refused := account_usage.refused_in(str(error), found):
                return FullAccountError(f"{error}: {', '.join(map(str, refused))}", error.account)
        return error

    def _verify_objects(self) -> None:
        """Raise UnmountedError for a table that is not mounted, JobError for an object that is gone
        or has other columns than the start has found.

        If the cluster does not answer, nothing is known.
        """
        if self.impatient is None:
            return
        verify_mounted(self.impatient, self.context.settings)
        with suppress(YtError, OSError):
            context = replace(self.context, client=self.impatient)
            job_objects.require(context, "the job cannot continue")

    def _start(self) -> None:
        settings = self.context.settings
        self.impatient = connect(settings, patient=False)
        verify_mounted(self.impatient, settings)  # no epoch for each try of a long wait
        # Save the epoch now: a later start in this process must raise it from here.
        connector = choose_connector.line(self.spark, settings)
        self.epoch = start.claim(self.context, self.tablets, self.epoch, connector)
        begun = start.start(self.context, self.tablets, self.epoch)
        self.queues = begun.queues
        for note in begun.notes:
            say(f"recovery: {note}")
        for note in begun.warnings:
            warn(f"recovery: {note}")
        refused, self.refused = self.refused, None
        references = JobReferences(self.spark, self.context, self.references)
        flow = pipeline.flow_of(self.spark, self.context, self.read_reference(), references)
        references.free_former()
        self.references = references
        if flow.untraceable:
            warn(flow.of_late_rows)
        rows = self.rows_at_first or self._rows_of_last_batch(begun.head)
        query, batch = pipeline.start(
            flow,
            self.context,
            self.tablets,
            self.epoch,
            refused=refused,
            stop=self.stop,
            rows_at_first=rows,
            lock=partial(own_transaction, self.impatient, settings.consumer),
        )
        try:
            self._follow(query, batch)
        finally:
            self.rows_at_first = batch.pace.rows if batch.pace else 0
            _end(query)
            batch.close()

    def _rows_of_last_batch(self, head: Head) -> int:
        """Return what the last batch of the process before was allowed to read; 0: not known."""
        settings = self.context.settings
        if settings.batch_seconds is None:
            return 0
        found = batch_history.newest(self.context.client, settings.ledger, head, 1)
        return limit_of(found[0]) if found else 0

    def hear_stop(self) -> None:
        """Ask the ledger whether this process has to end; a cluster that is away says nothing."""
        client = self.impatient or self.context.client
        with suppress(YtError, OSError):
            head = read_head(self.context.settings.ledger, client.select_rows)
            if head is not None:
                self.stop.hear(head, self.epoch)

    def read_reference(self) -> DataFrame | None:
        """Return the reference table as it is now; None for a job without one.

        Raises JobError when it cannot be used and was not read before.
        """
        former = self.reference
        try:
            self.reference = read_reference(self.spark, self.context)
            if former is not None:
                former.unpersist()
        except (YtError, OSError, JobError) as error:
            if self.reference is None:
                raise
            warn(f"continuing with the reference table as last read: {first_line(error)}")
        return self.reference

    @property
    def _trying_once(self) -> JobContext:
        """The job with a client that tries once: who follows a query has to notice its end, too."""
        return replace(self.context, client=self.impatient or self.context.client)

    def _follow(self, query: StreamingQuery, batch: Batch) -> None:
        """Watch the query until it must stop, then let its micro-batch finish."""
        settings, once = self.context.settings, self._trying_once
        into = ", ".join(settings.outputs.values())
        say(f"{Event.RUNNING}, epoch {self.epoch.number}: {', '.join(settings.queues)} -> {into}")
        tasks = partial(finished_tasks, self.spark)
        watch = Watchdog(once, self.epoch, query, tasks, self.queues, stop=self.stop)
        monitor = self._monitor(query, batch, watch)
        self._watch(query, batch, watch, monitor)
        if was_active := query.isActive:
            _end(query)
        self.has_progressed |= monitor.report()  # also of the batch before one that has failed
        if not was_active:
            self._judge_end(query, batch)
        batch.static_tables.publish(once.client, settings, math.inf)

    def _monitor(self, query: StreamingQuery, batch: Batch, watch: Watchdog) -> ProgressMonitor:
        """Return what says a line for each batch."""
        return ProgressMonitor(
            query=query,
            epoch=self.epoch.number,
            large_state_bytes=self.context.job.large_state_bytes,
            outcomes=batch.outcomes,
            queues=lambda: watch.queues,
            most=self.context.settings.max_rows_per_partition,
            said=self.said,
            warnings=CapacityCheck(self._trying_once, self.said).warnings,
        )

    def _watch(
        self, query: StreamingQuery, batch: Batch, watch: Watchdog, monitor: ProgressMonitor
    ) -> None:
        """Return when the query has ended, or when it must and no batch of it is under way."""
        first_look = self.first_look = self.first_look or IdleSignal(self._trying_once)
        ticks = self._ticks(query, batch, watch, first_look)
        is_read_again = bool(
            self.context.job.reference or (self.references and self.references.whole)
        )
        end = time.monotonic() + (
            self.context.settings.reference_refresh if is_read_again else math.inf
        )
        while query.isActive:
            if monitor.report():
                self.has_progressed = True
                self._warn_of_pace(batch.pace)
            first_look.is_over |= self.has_progressed
            for tick in ticks:
                tick(time.monotonic())
            self.is_idle = watch.is_idle
            # Let each query run one trigger, or refreshes alone would restart it forever.
            is_due = time.monotonic() >= end and query.lastProgress is not None
            if self.stop.is_set() or is_due:
                batch.closing.set()
                if not query.status["isTriggerActive"]:
                    return
            time.sleep(_POLL_SECONDS)

    def _ticks(
        self, query: StreamingQuery, batch: Batch, watch: Watchdog, first_look: IdleSignal
    ) -> Sequence[Callable[[float], None]]:
        """Return what is called over and over with the time: each has a clock of its own."""
        once = self._trying_once
        return [
            watch.look,
            partial(first_look.look, query, self.epoch),
            partial(batch.static_tables.publish, once.client, once.settings),
            *([batch.archives.tables.tick] if batch.archives is not None else []),
            partial(self.teller.tell, once),
            OperationNote(once, lambda: watch.queues).tick,
        ]

    def _judge_end(self, query: StreamingQuery, batch: Batch) -> None:
        """Raise what has ended the query, unless its last batch was told to write nothing."""
        failed = failed_of(batch.outcomes)
        failure = failed.failure if failed is not None else None
        if isinstance(failure, ClosedError):
            return
        # An outcome that is left is of a batch that Spark has not finished.
        self.is_idle = self.is_idle and not batch.outcomes
        if failed is not None and failure is not None:
            with explained_spark(f"batch {failed.name}: "):
                raise failure
        self._await_end(query, batch)
        raise RestartableError("the query ended unexpectedly")

    def _warn_of_pace(self, pace: Pace | None) -> None:
        """Say that no batch can be as short as `batch_seconds` wants it."""
        least = pace.shortest if pace else None
        if pace and least and self.said.is_new("the shortest batch", round(least * 1000), 1):
            warn(
                f"batch_seconds = {pace.seconds:g} cannot be met: half of a batch of {least:.1f} s "
                f"is spent whatever it reads, so batches read {pace.rows} rows of each tablet"
            )

    def _await_end(self, query: StreamingQuery, batch: Batch) -> None:
        """Raise what has ended the query; JobError for a batch too large for an output's tablets.

        SPYT commits the transaction after the batch's function has returned.
        """
        try:
            with explained_space(batch.disk):
                query.awaitTermination()
        except StreamingQueryException as error:
            left = last_report(batch.outcomes)
            if left is not None and (
                found := overflow_of(str(error), left.name, left.done.written)
            ):
                self.refused = judged(self.context, found)
            raise


def _end(query: StreamingQuery) -> None:
    """Stop the query. A batch that Spark cannot interrupt is left: it commits in no later epoch."""
    try:
        if query.isActive:
            query.stop()
    except (PySparkException, Py4JJavaError) as error:
        warn(f"Spark does not end the batch under way: {cause(str(error))}")


def supervise(job: Job, runner: QueryRunner, stop: StopSignal) -> str:
    """Start queries until ``stop`` is set, with a pause after each failure; return how it ended.

    Raises JobError after the job's most failures without a batch in between, and RestartableError
    when the batch that ``stop`` waited for fails. An outage is waited for.
    """
    failures: deque[float] = deque()
    outage: OutageLog | None = None
    while not stop.is_set():
        try:
            runner.run()
            outage = None
        except OutageError as error:
            failures.clear()  # they were its beginning
            if outage is None or runner.has_progressed:
                outage = OutageLog(time.monotonic())
            outage.tell(error, time.monotonic())
            _pause(job, outage.count, runner, stop, outage)
        except RestartableError as error:
            if stop.is_set():  # its last batch failed: the next start runs it again
                if isinstance(error, StalledError):
                    warn(f"the batch is given up: {error}")
                    return STOPPED_IN_A_BATCH
                raise
            outage, now = None, time.monotonic()
            if runner.has_progressed:
                failures.clear()
            failures.append(now)
            # Only of a job without rows to read: each try of a batch may take longer than a period.
            while runner.is_idle and failures[0] < now - job.failure_period_seconds:
                failures.popleft()
            # Allow one more query for a refused batch: it says how to let the batch pass.
            if len(failures) >= job.most_failures + (runner.refused is not None):
                raise JobError(
                    f"gave up after {len(failures)} failures and no batch in between; the last: "
                    f"{error}",
                    "fix the cause and start again: committed rows are kept",
                    code=ErrorCode.GAVE_UP,
                ) from error
            warn(f"{Event.FAILURE} {len(failures)} of {job.most_failures}: {error}; starting again")
            _pause(job, len(failures), runner, stop)
    return STOPPED


def wait_mounted(context: JobContext) -> None:
    """Wait until every table of the job is mounted, and say for what."""
    outage = OutageLog(time.monotonic())
    while lines := closed(context.client, context.settings):
        outage.tell(UnmountedError("; ".join(lines)), time.monotonic())
        time.sleep(LOOK_SECONDS)


def _pause(
    job: Job,
    count: int,
    runner: QueryRunner,
    stop: StopSignal,
    outage: OutageLog | None = None,
) -> None:
    """Wait after the failure number ``count``; a signal or `stop` ends the wait."""
    # Cap the exponent: after about a day 2**n overflows a float.
    doubled = job.first_pause_seconds * 2 ** min(count - 1, _MOST_DOUBLINGS)
    pause = min(doubled, job.longest_pause_seconds)
    end = time.monotonic() + pause
    while not stop.is_set():
        runner.hear_stop()
        if outage is not None:
            outage.remind(time.monotonic())
        if (left := end - time.monotonic()) <= 0:
            return
        stop.wait(min(left, LOOK_SECONDS))


def read_reference(spark: SparkSession, context: JobContext) -> DataFrame | None:
    """Return the reference table as it is now; None for a job without one."""
    job, path = context.job, context.settings.reference
    if path is None:
        return None
    return reference_table.read(
        spark, context.client, path, job.reference_columns, job.reference_rows
    )


def _stop_on_signals(stop: StopSignal) -> None:
    """Make SIGTERM and SIGINT set ``stop``; a second signal does not force a harder stop."""

    def handle(number: int, _frame: FrameType | None) -> None:
        if not stop.is_set():
            say(f"{signal.Signals(number).name}: finishing the micro-batch, then stopping")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
