"""One micro-batch: checked against the ledger, written by SPYT's own sink, audited, entered.

Spark calls ``Batch`` for each micro-batch (foreachBatch). In a transactional job SPYT has opened a
tablet transaction before that call and commits it after ``commits/N`` was written, whatever the
sink is (MicroBatchExecutionDecorators.runBatch); its sink class finds the transaction in a variable
of the thread. So an exception here leaves nothing of the batch.

SPYT moves the consumer without asking where it stood (``advanceConsumer`` without an old offset),
and Spark's numbers mean nothing across checkpoints: what happened is what the head says.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError

from ..cluster.client import cluster_name, explanation, first_line
from ..connector.batch_counts import metrics
from ..connector.callback import Callback
from ..connector.choose_connector import seconds_written, set_pace, skip_pauses
from ..connector.key_lookup import looked_up_in
from ..connector.pyspark_internals import commit_milliseconds, of_execution
from ..connector.spark_batch import planned_by
from ..connector.spyt import opened_transaction
from ..connector.tablet_transactions import Tablets, Transaction
from ..errors import JobError, OutageError, RestartableError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED, JobContext
from ..ledger import batch_commit, ledger_rows, positions, steady_time
from ..ledger.batch_row_ranges import Ranges, ranges
from ..ledger.ledger_rows import (
    BatchRow,
    BatchTimes,
    Head,
    LookedUp,
    StoreFigures,
    batch_name,
)
from ..ledger.offsets import Rows
from ..ledger.positions import Select, read_head
from ..ledger.queue_layout import QueueLayout
from ..outputs import column_values, merged_rows, sum_bounds
from ..outputs.archives import Archives
from ..outputs.batch_metrics import BatchMetrics, batch_metrics
from ..outputs.output_frames import Frames, OutputFrames
from ..outputs.sink import Sums, WrittenRows, write_outputs, write_streamed
from ..outputs.static_outputs import StaticTables
from ..outputs.tablet_overflow import TabletOverflow, overflow_error
from ..recovery import spark_logs
from ..recovery.epoch import Epoch, verify_epoch
from ..rejected import former_attempt
from ..rejected.kept_late_rows import KeptLateRows, LateRowsReader
from ..rejected.late_rows import LateRows, late_rows
from ..rejected.limit import SkippedRows, rejected, verify_late_limit, verify_limit, warned
from ..rejected.outside_periods import OutsideRows
from ..rejected.rows_without_time import RowsWithoutTime, rows_without_time
from ..rejected.writer import RejectedRowsWriter
from ..spark import state_metrics
from ..spark.spark_errors import cause
from .batch_log import BatchReport
from .batch_outcome import BatchOutcome, BatchOutcomes
from .coalesce import TaskCoalescing
from .offset_check import reads, verify_start
from .pace import Pace
from .read_audit import audit, verify_queues
from .references import JobReferences
from .stop_signal import StopSignal
from .stopwatch import Stopwatch

_START_SECONDS = 60.0
_ENDING = (ErrorCode.TOKEN, ErrorCode.PERMISSION)
"""Answers of the cluster that no retry changes."""


class ClosedError(Exception):
    """The query is closing: this batch has written nothing."""


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch as Spark hands it over."""

    number: int
    name: str
    """As people read it: epoch and number."""
    rows: DataFrame
    plan: Any
    """The query's execution of this batch (IncrementalExecution)."""
    ends: Rows
    """Where the partitions end after it, by Spark's offset log."""
    transaction: Transaction | None
    """The transaction that SPYT commits after this batch; None without one."""
    started: datetime


@dataclass(frozen=True)
class VerifiedBatch:
    """What is known of a batch that may be written."""

    head: Head
    """The head before it."""
    planned: Ranges
    """The rows that it has to read and does read."""
    milliseconds: int = 0
    """How long the cluster took to say where the job is."""


@dataclass(frozen=True)
class AuditedBatch:
    """What Spark has counted of a batch that has read the planned rows."""

    metrics: BatchMetrics
    skipped: SkippedRows
    """Not too many; but not judged if Spark has not counted them."""
    late: KeptLateRows | None = None
    """Those of them that are late and have to be written."""


@dataclass
class Batch:
    """The function that Spark calls with the rows and the number of each micro-batch."""

    context: JobContext
    tablets: Tablets
    epoch: Epoch
    """The epoch whose start this query is of."""
    outputs: OutputFrames
    """How the rows become those of each output."""
    static_tables: StaticTables
    """The tables of static outputs."""
    query: Future[StreamingQuery]
    """The query that calls this function, once it was started."""
    disk: TemporaryDirectory[str] | None = None
    """Its checkpoint, if it is on the driver's disk; removed with the object."""
    uncounted: frozenset[str] = frozenset()
    """Queues whose rows the plan does not count once."""
    keeps_late: bool = False
    """Whether its late rows can be told, and go to `rejected`."""
    refused: TabletOverflow | None = None
    """The same batch, which the cluster has refused: to be looked at and not to be written."""
    pace: Pace | None = None
    """How large the next batch may be; None: as large as the settings say."""
    is_own: bool = False
    """Whether it runs on our own connector: then a backlog is read without pauses, and the writes
    are timed."""
    counted_states: int = 0
    """How many operators with state it has, if the ledger counts their rows and not Spark."""
    stop: StopSignal = field(default_factory=StopSignal)
    """Hears whether `stop` asks this process to end."""
    references: JobReferences | None = None
    """What lookup() reads; None: nothing."""
    archives: Archives | None = None
    """What it writes for tables of periods; None: no output has them."""
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when the query is to end: the batch under way is the last one."""
    outcomes: BatchOutcomes = field(default_factory=dict)
    """What the supervisor learns, and takes from here."""
    _tasks: TaskCoalescing = field(default_factory=TaskCoalescing)
    _callback: Callback | None = None
    _recorded: int = 0
    """How long the last batch took to enter itself into the ledger, in milliseconds."""
    _after: Head | None = None
    """The head that the last batch has left, without the counts of all batches."""

    @cached_property
    def cluster(self) -> str:
        """The cluster's name, asked once and not for each batch."""
        return cluster_name(self.context.client)

    @cached_property
    def again(self) -> RejectedRowsWriter:
        """What reads rejected rows a second time."""
        return RejectedRowsWriter(self.context, self.tablets)

    @cached_property
    def _started(self) -> StreamingQuery:
        """The query that calls this function, from here on without pauses in a backlog."""
        query = self.query.result(_START_SECONDS)
        if self.is_own:
            skip_pauses(query, self.context.settings, self.tablets.java)
        return query

    def callback(self, spark: SparkSession) -> Callback:
        """Return what Spark takes to call this object."""
        self._callback = Callback(spark, self)
        return self._callback

    def close(self) -> None:
        """Free what the query has kept; it has been stopped."""
        if self._callback is not None:
            self._callback.forget(self.query.result())
        if self.disk is not None:
            self.disk.cleanup()

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Write the batch, or raise: then SPYT aborts the transaction and Spark ends the query."""
        outcome = self._outcome(rows, number)
        self.outcomes[number] = outcome
        if outcome.failure is not None:
            raise RuntimeError(f"batch {outcome.name} failed: {cause(str(outcome.failure))}")

    def _outcome(self, rows: DataFrame, number: int) -> BatchOutcome:
        name = self._name(number)
        try:
            return BatchOutcome(name, self._run(rows, number))
        except (YtError, OSError) as error:
            failure: Exception = self._of_the_cluster(error, name)
        except Exception as error:
            said = f"batch {name}"
            failure = (
                column_values.job_error(error, said) or merged_rows.job_error(error, said) or error
            )
        return BatchOutcome(name, failure=failure)

    def _of_the_cluster(self, error: YtError | OSError, name: str) -> Exception:
        found = explanation(error, self.context.settings.proxy)
        if isinstance(found, OutageError) or found.code in _ENDING:
            return found
        return RestartableError(f"batch {name}: {first_line(error)}")

    def _name(self, number: int) -> str:
        return batch_name(self.epoch.number, number)

    def _run(self, rows: DataFrame, number: int) -> BatchReport:
        """Do the four steps of a batch; only the last one makes it happen.

        1. Verify that it is the next one after the ledger's head, and reads the rows after it. A
           batch that its transaction undoes whole is written meanwhile.
        2. Write its rows into the outputs.
        3. Audit what was read and what was skipped. Where the rows are computed first, this is done
           before they are written. Write the rows that REJECT keeps out. Then verify that the
           queues are cut and typed as they were when the batch was planned.
        4. Record it: the head and the batch's row of the ledger.
        """
        if self.closing.is_set():  # under a backlog Spark leaves no time between two batches
            raise ClosedError(f"batch {self._name(number)} is left for the next start")
        batch, watch = self._handed_over(rows, number), Stopwatch()
        verifying = self.tablets.beside.submit(self._verify, batch)
        if not self._is_undone_whole:
            verifying.result()
            watch.lap()
        try:
            written, audited = self._write(batch, verifying)
        finally:  # the error of the verification says more than one of the write
            verified = verifying.result()
        audited = audited or self._audit(batch, verified)
        skipped = self._write_rejected(batch, verified, audited)
        times = self._times(batch, verified, watch.lap())
        layouts = self._verify_queues(batch, verified)  # after the last row was read
        verified = replace(verified, head=replace(verified.head, layouts=layouts))
        watch.lap()
        written = replace(written, rows={**audited.metrics.written, **written.rows})
        report = self._record(batch, verified, written, skipped, times)
        self._recorded = watch.lap()
        self._set_pace(batch, verified.planned)
        return report

    def _times(self, batch: MicroBatch, verified: VerifiedBatch, work: int) -> BatchTimes:
        """Return how long the parts of a batch took that has worked for so many milliseconds."""
        write = round(1000 * seconds_written(self.tablets.java)) if self.is_own else 0
        before = commit_milliseconds(self._started, batch.number - 1)
        commit = before + self._recorded if before else 0
        return BatchTimes(max(0, work - write), write, verified.milliseconds, commit)

    def _handed_over(self, rows: DataFrame, number: int) -> MicroBatch:
        started = steady_time.now()
        plan, ends = planned_by(self._started, number)
        transaction = self._spyts(number)
        return MicroBatch(number, self._name(number), rows, plan, ends, transaction, started)

    # -- 1. verify

    @property
    def _is_undone_whole(self) -> bool:
        """Whether aborting the transaction undoes the whole batch.

        Not with state, which is stored outside it.
        """
        context = self.context
        return context.guarantee.in_transaction and not context.job.kind.is_stateful

    def _verify(self, batch: MicroBatch) -> VerifiedBatch:
        watch = Stopwatch()
        transaction, queues = batch.transaction, self.context.settings.queues
        select = transaction.select if transaction else self.context.client.select_rows
        head = self._verified_head(select, batch.number)
        spent = watch.lap()
        self.stop.hear(head, self.epoch)
        ends = spark_logs.by_queue(batch.ends, len(queues))
        planned = ranges(batch.name, queues, head.ends, ends)
        verify_start(batch.name, planned, reads(batch.plan))
        return VerifiedBatch(head, planned, spent)

    def _verified_head(self, select: Select, number: int) -> Head:
        return verify_head(self.context, select, self.epoch, self.cluster, number)

    # -- 2. write

    def _write(
        self, batch: MicroBatch, verifying: Future[VerifiedBatch]
    ) -> tuple[WrittenRows, AuditedBatch | None]:
        """Write the rows of each output but those of REJECT; return the rows by output.

        And the audit, where the rows were computed first. The query itself counts the rows that it
        streams. Raises what there is to do about a refused batch, which is not written.
        """
        context, java, rows = self.context, self.tablets.java, batch.rows
        if not context.job.kind.is_stateful:
            rows = self._tasks.gathered(rows, batch.plan, batch.ends)
        if self.outputs.are_streamed and self.refused is None:
            # The rows have a plan of their own around the query's (Spark, ForeachBatchSink).
            frame = of_execution(rows, batch.plan, java) if rows is batch.rows else rows
            if self.archives is not None:
                pieces = self._write_pieces({"output": frame}, batch, self.archives)
                return WrittenRows(pieces), None
            sums = self._sums(verifying)
            is_first = self._after is None
            written = write_streamed(
                frame, context, java, batch.number, sums, is_first=is_first,
                rejected=self.again.of_tasks() if self.is_own else None,
            )  # fmt: skip
            return written, None
        with self.outputs.finished(rows) as finished:
            is_computed = self.outputs.are_computed_first
            audited = self._audit(batch, verifying.result()) if is_computed else None
            frames = self.outputs.of(finished)
            if self.refused is not None:
                if context.job.reject:
                    rejected = self.again.rejected_rows(batch.rows, batch.plan)
                    frames = {**frames, REJECTED: rejected}
                raise overflow_error(context, self.refused, frames)
            # First: a failure here leaves nothing that a reader sees, under no guarantee.
            static = self.static_tables.write(context, frames, batch.number)
            if self.archives is not None:
                static |= self._write_pieces(frames, batch, self.archives)
            sums = self._sums(verifying)
            is_first = self._after is None
            written = write_outputs(frames, context, java, batch.number, sums, is_first=is_first)
            return replace(written, rows={**written.rows, **static}), audited

    def _sums(self, verifying: Future[VerifiedBatch]) -> Sums:
        """Return the bounds of the sums before the batch.

        A batch that its transaction undoes whole is written while the head is verified: it takes
        those that the batch before it has left.
        """
        if not self.context.job.totals:
            return {}
        if self._after is not None:
            return sum_bounds.before(self.context, self._after.sums, is_first=False)
        return sum_bounds.before(self.context, verifying.result().head.sums, is_first=True)

    def _write_pieces(
        self, frames: Frames, batch: MicroBatch, archives: Archives
    ) -> Mapping[str, int]:
        return archives.write(
            self.context, frames, self.epoch.number, batch.number, self.tablets.java
        )

    # -- 3. audit

    def _audit(self, batch: MicroBatch, verified: VerifiedBatch) -> AuditedBatch:
        """Raise unless the batch has read the rows that were planned, and skips few of them.

        Called once, when Spark has computed all rows: it counts again what it computes again.
        """
        context, planned = self.context, verified.planned
        metrics = batch_metrics(batch.plan, context.settings.queues, self.uncounted)
        try:
            audit(context.client, batch.name, planned, metrics.read)
        except RestartableError:
            self._verify_queues(batch, verified)  # it says more than rows that are missing
            raise
        late = self._late(batch, planned) if self.keeps_late else None
        skipped = self._skipped(batch, metrics, late)
        if skipped.rejected is not None:
            self._verify_limit(skipped, planned)
        return AuditedBatch(metrics, skipped, late)

    def _late(self, batch: MicroBatch, planned: Ranges) -> KeptLateRows | None:
        reader = LateRowsReader(self.context, self.tablets, self.uncounted)
        return reader.read(batch.rows, batch.plan, batch.name, planned)

    def _skipped(
        self, batch: MicroBatch, metrics: BatchMetrics, kept: KeptLateRows | None
    ) -> SkippedRows:
        """Count the rows that the batch skips; the late ones are read again for this."""
        job, late, without_time = self.context.job, LateRows(), RowsWithoutTime()
        if job.kind.is_stateful:
            late = kept.figures if kept is not None else self._counted_late(batch)
            without_time = rows_without_time(batch.rows, batch.plan, self.tablets.java)
        return SkippedRows(
            rejected=rejected(metrics.rejected, job),
            late=late.count,
            is_late_kept=self.keeps_late,
            without_time=without_time.count,
            dropped_without_time=without_time.dropped,
            watermark=late.watermark,
            newest=late.newest,
            warned=warned(metrics.rejected, job),
        )

    def _counted_late(self, batch: MicroBatch) -> LateRows:
        if self.keeps_late:  # it has none
            return LateRows()
        return late_rows(batch.rows, batch.plan, self.tablets.java)

    def _verify_limit(self, skipped: SkippedRows, planned: Ranges) -> None:
        settings = self.context.settings
        read = sum(rows.count for partitions in planned.values() for rows in partitions.values())
        verify_limit(skipped, read, settings.reject_limit, self.context.job)
        verify_late_limit(skipped, read, settings.late_limit)

    def _write_rejected(
        self, batch: MicroBatch, verified: VerifiedBatch, audited: AuditedBatch
    ) -> SkippedRows:
        """Write the rows that REJECT keeps out, and late ones; return which the batch skips."""
        planned, skipped = verified.planned, audited.skipped
        if audited.late is not None:
            audited.late.write(self.context, self.tablets, batch.number)
            audited.late.free()
        outside = self.archives.rejected() if self.archives is not None else {}
        skipped = replace(skipped, outside=outside)
        if self.archives is not None and outside:
            writer = OutsideRows(self.context, self.tablets, self.outputs)
            writer.write(batch.rows, batch.plan, batch.number, self.archives.skipped)
        counts = skipped.rejected
        if not any(planned.values()) or (counts is not None and not any(counts.values())):
            return skipped
        named, figures = (batch.number, batch.name), audited.metrics.rejected
        again = self.again.write(batch.rows, batch.plan, named, figures, planned, batch.transaction)
        if counts is None:  # they were not known before
            skipped = replace(skipped, rejected=again)
            self._verify_limit(skipped, planned)
        return skipped

    def _verify_queues(
        self, batch: MicroBatch, verified: VerifiedBatch
    ) -> Mapping[str, QueueLayout]:
        context, head, planned = self.context, verified.head, verified.planned
        columns = context.job.queue_columns
        return verify_queues(context.client, batch.name, head, planned, columns)

    # -- 4. record

    def _record(
        self,
        batch: MicroBatch,
        verified: VerifiedBatch,
        written: WrittenRows,
        skipped: SkippedRows,
        times: BatchTimes,
    ) -> BatchReport:
        """Write the head and the batch's row: into SPYT's transaction, or into one of their own."""
        job, path, number = self.context.job, self.context.settings.ledger, batch.number
        rows_of = {**dict.fromkeys(job.outputs, 0), **written.rows}
        if skipped.written:
            rows_of[REJECTED] = skipped.written
        pairs = {
            path: {partition: (rows.first, rows.end) for partition, rows in partitions.items()}
            for path, partitions in verified.planned.items()
        }
        tables = self.static_tables.tables(number)
        done = BatchRow(
            ranges=pairs,
            written=rows_of,
            started=batch.started,
            ended=steady_time.now(),
            tables=tables,
            late=skipped.late,
            rejected={**(skipped.rejected or {}), **skipped.outside},
            limit=self.pace.rows if self.pace else 0,
            without_time=skipped.without_time,
            lookups=self._looked_up(number),
            warned=dict(skipped.warned),
            times=times,
            pieces=self.archives.pieces if self.archives is not None else (),
            changes=written.changes,
        )
        rows, store = self._state(batch, verified) if job.kind.is_stateful else (None, None)
        after = batch_commit.moved(verified.head, number, verified.planned, rows, store)
        self._after = after = replace(after, sums=written.sums)
        if batch.transaction is not None:
            batch_commit.write_head(batch.transaction, path, after, done)
        else:
            consumer = self.context.settings.consumer
            # The outputs took their time.
            verify = partial(self._verified_head, number=number)
            also = partial(self._remove_former, batch, verified.planned)
            batch_commit.close_batch(self.tablets, verify, consumer, path, after, done, also)
        return BatchReport(after, done, skipped.reasons, job.totals)

    def _state(self, batch: MicroBatch, verified: VerifiedBatch) -> tuple[int | None, StoreFigures]:
        """Return the rows of the state after a batch that was executed, and what its store took."""
        found = metrics(batch.plan, state_metrics.METRICS, self.tablets.java)
        spent = sum(found[name] for name in state_metrics.TIMES)
        store = StoreFigures(found[state_metrics.MEMORY], found[state_metrics.FILES], spent)
        if not self.counted_states:
            return found[state_metrics.ROWS], store
        stores = self.counted_states * self.context.job.shuffle_partitions
        return state_metrics.rows_after(verified.head.state_rows, found, stores), store

    def _remove_former(self, batch: MicroBatch, planned: Ranges, transaction: Transaction) -> None:
        """Remove what a former attempt has rejected for an archive, and this one has not."""
        if self.archives is not None:
            former_attempt.remove(self.context, transaction, planned, batch.started)

    def _looked_up(self, number: int) -> Mapping[str, LookedUp]:
        if self.references is None or not self.context.job.references:
            return {}
        found = looked_up_in(self.tablets.java, str(self._started.runId), number)
        known = self.references.columns
        return self.references.looked_up(one for one in found if one.name in known)

    def _set_pace(self, batch: MicroBatch, planned: Ranges) -> None:
        """Choose how many rows the next batch may read."""
        if self.pace is not None:
            read = max((rows.count for by in planned.values() for rows in by.values()), default=0)
            seconds = (steady_time.now() - batch.started).total_seconds()
            self.pace = self.pace.after(read, seconds)
            set_pace(self.context.settings, self.pace.rows, self.tablets.java)

    def _spyts(self, number: int) -> Transaction | None:
        """Return the transaction that SPYT has opened and will commit; None without one.

        Raises JobError when the guarantee needs one that is missing.
        """
        if not self.context.guarantee.in_transaction:
            return None
        found = opened_transaction(self.tablets.java)
        if found is None:
            raise JobError(
                f"SPYT has opened no transaction for batch {self._name(number)}",
                "start through `python -m`, make or `make submit`; `check` verifies SPYT's patch",
                code=ErrorCode.SPYT_PATCH,
            )
        return self.tablets.attached(*found)


def verify_head(
    context: JobContext, select: Select, mine: Epoch, cluster: str, number: int
) -> Head:
    """Return the head, if this batch is the next one after it.

    Raises SupersededError for a foreign epoch, RestartableError for another batch, or for a
    consumer that something else has moved.
    """
    settings = context.settings
    head = verify_epoch(read_head(settings.ledger, select), mine)
    name = batch_name(mine.number, number)
    if (head.folder, head.batch) != (mine.number, number - 1):
        raise RestartableError(
            f"batch {name} does not follow {ledger_rows.last_name(head)}, where the ledger is",
            code=ErrorCode.OTHER_ROWS,
        )
    # Elsewhere an older driver may move it at any time: what a batch reads is verified then.
    if context.guarantee.in_transaction:
        found = positions.consumed(select, cluster, settings.consumer)
        for path in head.queues:
            ends = head.ends[path]
            for partition in sorted({*ends, *found.get(path, {})}):
                row, end = found.get(path, {}).get(partition, 0), ends.get(partition, 0)
                if row != end:
                    raise RestartableError(
                        f"batch {name} begins at row {end} of {path}, partition {partition}, "
                        f"but the consumer is at row {row}: something else moved it",
                        code=ErrorCode.CONSUMER_MOVED,
                    )
    return head
