"""`rewind state`: a state that cannot be loaded is built again from the newest version that can.

The batches since that version are executed again with the rows that the ledger has of them, in a
copy of the checkpoint. Nothing is written into the outputs, and the consumer does not move. What a
batch would write now is compared with what the ledger says that it wrote then. The copy takes the
place of the damaged folder at the end: until then, nothing but the epoch has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ..connector.callback import Callback
from ..connector.choose_connector import begun_at, in_use
from ..connector.java import jvm_of
from ..connector.pyspark_internals import start_unverified
from ..connector.spark_batch import planned_by
from ..connector.tablet_transactions import Tablets
from ..connector.transform_plan import countable_states
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..instance import stop_request
from ..job import JobContext
from ..ledger import batch_history, ledger_rows, positions
from ..ledger.batch_history import LedgerRow
from ..ledger.batch_row_ranges import Ranges, RowRange
from ..ledger.ledger_rows import Head, lookups_of
from ..outputs.batch_metrics import batch_metrics
from ..outputs.output_frames import computed
from ..recovery import checkpoint_repair, spark_logs, start, state_files
from ..recovery.checkpoint_repair import path_of
from ..recovery.epoch import Epoch, raise_epoch
from ..recovery.state_files import StatePartition
from ..settings import spark_conf
from ..settings.job_settings import OWN
from ..spark.state_reading import StateReader
from ..text_table import counted
from .offset_check import reads, verify_start
from .pipeline import Flow, flow_of
from .read_audit import audit, uncounted
from .references import JobReferences

_START_SECONDS = 60.0
_OTHERWISE = (
    'restore the folder from a copy, or use `rewind` with rows: see "A damaged state" in '
    "docs/operations.md"
)


@dataclass(frozen=True)
class RebuildPlan:
    """How the state of a stopped job comes back."""

    head: Head
    version: int
    """The version that can be loaded; the state after the head's batch is one more than it."""
    damaged: Mapping[str, str]
    """Damaged file -> what is wrong with it."""
    left_out: tuple[str, ...]
    """Snapshots that Spark must not find."""
    again: tuple[LedgerRow, ...]
    """The ledger's rows of the batches that are executed again."""

    @property
    def said(self) -> Iterator[str]:
        """What is damaged and what is done about it, a line each."""
        for path, problem in self.damaged.items():
            yield f"damaged: {path}: {problem}"
        if not self.damaged:
            yield "every file that Spark needs for the state can be read"
        rows = sum(int(row["rows_read"]) for row in self.again)
        if self.again:
            yield (
                f"the newest version that can be loaded is the one after batch {self.version - 1}: "
                f"{counted(len(self.again), 'batch')} since, with {counted(rows, 'row')}, are "
                "executed again, and nothing is written"
            )
        elif self.left_out:
            yield "without the damaged snapshots the state can be loaded: no batch is needed for it"


def planned(context: JobContext, spark: SparkSession) -> RebuildPlan:
    """Return what `rewind state` would do; changes nothing. Raises JobError if it cannot help."""
    client, settings = context.client, context.settings
    found = positions.read(client, settings)
    head = found.begun
    if not context.job.kind.is_stateful or head is None or head.folder is None or head.batch < 0:
        raise JobError(
            "the job has no state" if head is not None else "the job has never run",
            "`rewind` with earliest, latest or rows moves it",
            code=ErrorCode.NOT_FOR_THIS_JOB,
        )
    connector = in_use(spark, settings)
    if not connector.is_own:
        raise JobError(
            "only the job's own connector can execute batches again"
            + (f", and it does not run here: {connector.problem}" if connector.problem else ""),
            f'set connector = "{OWN}"; or {_OTHERWISE}',
            code=ErrorCode.NOT_FOR_THIS_JOB,
        )
    start.decide(context, found)
    folder, last = path_of(settings, head.folder), head.batch + 1
    reader = StateReader(client, jvm_of(spark))
    parts = [*state_files.partitions(client, folder, context.job.shuffle_partitions)]
    version = state_files.newest(parts, last, reader.is_sound)
    damaged = reader.damaged | _gone(parts, last, reader)
    offsets = set(spark_logs.numbers(client, f"{folder}/offsets"))
    if not {*range(max(0, version - 1), last)} <= offsets:
        raise JobError(
            "no version of the state that the checkpoint keeps can be loaded: "
            + "; ".join(f"{path}: {said}" for path, said in damaged.items()),
            _OTHERWISE,
            code=ErrorCode.STATE_DAMAGED,
        )
    left_out = tuple(
        path
        for part in parts
        for number, path in part.snapshots.items()
        if number <= version and number > part.base(version, reader.is_sound)
    )
    return RebuildPlan(head, version, damaged, left_out, _batches(context, head, last - version))


def _gone(parts: list[StatePartition], last: int, reader: StateReader) -> dict[str, str]:
    """Return the folders that lack changes, and which."""
    found = {part.path: part.gone(last, reader.is_sound) for part in parts}
    return {
        path: f"the changes of version {', '.join(map(str, missing[-3:]))} are gone"
        for path, missing in found.items()
        if missing
    }


def _batches(context: JobContext, head: Head, count: int) -> tuple[LedgerRow, ...]:
    """Return the ledger's rows of the last batches. Raises JobError unless it has all of them."""
    rows = batch_history.newest(context.client, context.settings.ledger, head, count)
    numbers = [int(row["batch"]) for row in rows]
    if count and numbers != [*range(head.batch - count + 1, head.batch + 1)]:
        raise JobError(
            f"the ledger does not have the last {counted(count, 'batch')} of this checkpoint",
            _OTHERWISE,
            code=ErrorCode.NO_BATCH,
        )
    return tuple(rows) if count else ()


def rebuild(context: JobContext, spark: SparkSession, tablets: Tablets) -> Iterator[str]:
    """Build the state again; yield what is done. Raises JobError where a batch differs."""
    plan = planned(context, spark)
    yield from plan.said
    if not plan.left_out and not plan.again:
        return
    raise_epoch(context.settings.ledger, tablets, Epoch())  # no older driver commits any more
    now = positions.read(context.client, context.settings).begun
    if now is None or now.number != plan.head.number:
        raise JobError(
            "another process has finished a batch meanwhile",
            "stop it, then try again",
            code=ErrorCode.ANOTHER_INSTANCE,
        )
    work = f"{context.settings.checkpoint}/rebuilt"
    looked_up = [JobReferences(spark, context, at=lookups_of(row)) for row in plan.again]
    for references in looked_up:
        references.verify_kept()  # before anything is copied
    source = path_of(context.settings, plan.head.folder or 0)
    _copy(context, plan, source, work)
    for row, references in zip(plan.again, looked_up, strict=True):
        flow = flow_of(spark, context, references=references)
        execution = _Execution(context, row, flow, spark)
        _plan_batch(context, source, work, execution.number)
        if countable_states(flow.rows):
            _forget_count(context, tablets)
        with begun_at(_offsets(context, work, execution), tablets.java):
            execution.run(work)
        yield f"batch {execution.name}: as the ledger has it"
    kept = f"{context.settings.checkpoint}/damaged-{plan.head.folder}"
    with context.client.Transaction():
        context.client.remove(kept, recursive=True, force=True)
        context.client.move(source, kept)
        context.client.move(work, source)
    stop_request.tell_command(context, "its state was built again, and it was not started since")
    yield f"the state is whole again; the damaged one is in {kept}: remove it when the job runs"


def _forget_count(context: JobContext, tablets: Tablets) -> None:
    """Let Spark count the rows of the state at the next start: see pipeline.start.

    The count of the ledger is of the batches as they were executed first.
    """
    ledger = context.settings.ledger
    with tablets.transaction() as own:
        if (head := positions.read_head(ledger, own.select)) is not None:
            row = ledger_rows.head_row(replace(head, state_rows=None))
            own.modify(ledger, ledger_rows.COLUMNS, [row])


def _copy(context: JobContext, plan: RebuildPlan, source: str, work: str) -> None:
    """Copy the checkpoint as it was when the version to load was its newest one."""
    client = context.client
    with client.Transaction():
        client.remove(work, recursive=True, force=True)
        client.create("map_node", work, recursive=True)
        checkpoint_repair.copy(client, source, work)
        for log in ("offsets", "commits"):
            for number in spark_logs.numbers(client, f"{work}/{log}"):
                if number >= plan.version:
                    client.remove(f"{work}/{log}/{number}")
        if (before := plan.version - 1) >= 0 and not client.exists(f"{work}/commits/{before}"):
            text = spark_logs.planned(client, work, before).commit_text()
            client.write_file(f"{work}/commits/{before}", text.encode(), force_create=True)
        for path in plan.left_out:
            client.remove(f"{work}{path.removeprefix(source)}")
        checkpoint_repair.remove_states(client, work, plan.version)


def _plan_batch(context: JobContext, source: str, work: str, number: int) -> None:
    """Let Spark find a batch that it has planned and not finished: it executes this one first."""
    to = f"{work}/offsets/{number}"
    context.client.remove(to, force=True)
    context.client.copy(f"{source}/offsets/{number}", to)


def _offsets(context: JobContext, work: str, execution: _Execution) -> dict[str, str]:
    """Return where the batch began, by queue, as an entry of Spark's log has it: the last rows."""
    ends = spark_logs.planned(context.client, work, execution.number).sources
    found = {}
    for (path, rows), end in zip(execution.planned.items(), ends, strict=False):
        if end != "-":
            offset = json.loads(end)
            for partition, range_ in rows.items():
                offset["partitions"][str(partition)] = range_.first - 1
            found[path] = json.dumps(offset)
    return found


@dataclass
class _Execution:
    """One batch of the ledger, executed again."""

    context: JobContext
    row: LedgerRow
    flow: Flow
    spark: SparkSession
    query: Future[StreamingQuery] = field(default_factory=Future)
    failure: Exception | None = None
    is_done: bool = False

    @property
    def number(self) -> int:
        """Its number in Spark's logs."""
        return int(self.row["batch"])

    @property
    def name(self) -> str:
        """Its name in the log of the job."""
        return ledger_rows.batch_name(int(self.row["epoch"]), self.number)

    @property
    def planned(self) -> Ranges:
        """The rows that it read."""
        found = ledger_rows.ranges_of(self.row)
        return {
            path: {p: RowRange(*rows) for p, rows in found.get(path, {}).items()}
            for path in self.context.settings.queues
        }

    def run(self, work: str) -> None:
        """Execute the batch in that checkpoint. Raises what has gone wrong."""
        callback = Callback(self.spark, self)
        values = {**self.context.values, "checkpoint_uri": f"yt:/{work}"}
        writer = (
            self.flow.rows.writeStream.foreachBatch(callback)
            .outputMode(self.context.job.kind.output_mode)
            .options(**spark_conf.filled(iter(spark_conf.WRITER[True]), values))
            .trigger(once=True)
        )
        query = start_unverified(writer, self.spark)
        self.query.set_result(query)
        try:
            query.awaitTermination()
        except Exception:
            if self.failure is None:
                raise
        finally:
            query.stop()
            callback.forget(query)
        if self.failure is not None:
            raise self.failure
        if not self.is_done:
            raise self._differs("Spark has not executed it")

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Execute the batch: Spark calls this with its rows."""
        try:
            if number != self.number:
                raise self._differs("Spark has executed another batch in its place")
            self._execute(rows)
            self.is_done = True
        except Exception as error:
            self.failure = error
            raise

    def _execute(self, rows: DataFrame) -> None:
        context, queues = self.context, self.context.settings.queues
        plan, _ = planned_by(self.query.result(_START_SECONDS), self.number)
        verify_start(self.name, self.planned, reads(plan))
        with computed(rows) as finished:
            counts = {name: one.count() for name, one in self.flow.outputs.of(finished).items()}
        seen = batch_metrics(plan, queues, uncounted(self.flow.rows, queues))
        audit(context.client, self.name, self.planned, seen.read)
        wrote = {str(name): int(count) for name, count in self.row["rows_written"].items()}
        for name, count in counts.items():
            if count != wrote.get(name, 0):
                raise self._differs(
                    f"it wrote {counted(wrote.get(name, 0), 'row')} into {name!r} then, and would "
                    f"write {count} now: transform() is another one, or depends on more than rows"
                )

    def _differs(self, problem: str) -> JobError:
        return JobError(
            f"the state cannot be built again: batch {self.name}: {problem}",
            f"nothing was changed; restore the previous transform.py, or {_OTHERWISE}",
            code=ErrorCode.STATE_DAMAGED,
        )
