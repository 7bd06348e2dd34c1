"""Queues -> transform() -> outputs, as one streaming query."""

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ..cluster.client import connect
from ..connector.carried_rows import is_lost_at
from ..connector.choose_connector import disk_uri, in_use, set_pace
from ..connector.compile_java import unavailable
from ..connector.late_droppers import is_untraceable_at
from ..connector.pyspark_internals import start_unverified, verify_stream
from ..connector.spark_plan import analysed
from ..connector.tablet_transactions import Tablets
from ..connector.transform_plan import countable_states, sources, stateful_operator
from ..declaration.checked_state import is_checked
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import PROCESSINGS, REJECTED, Job, JobContext
from ..ledger import positions
from ..outputs import any_columns, arrivals, column_values, merged_rows
from ..outputs.archives import Archives
from ..outputs.output_frames import Frames, OutputFrames, unproven, verify_columns
from ..outputs.sink import observed_writes, verify_sink
from ..outputs.static_outputs import StaticTables
from ..outputs.tablet_overflow import TabletOverflow
from ..recovery.checkpoint_repair import path_of
from ..recovery.epoch import Epoch, committed
from ..rejected import tagging
from ..schema.changes import Newest
from ..schema.periods import REJECT
from ..sealing.archive_tables import ArchiveTables, Lock
from ..settings import spark_conf
from ..settings.job_settings import MEMORY
from ..spark.local_checkpoint import explained_space, made_folder
from ..spark.source import events
from ..spark.state_metrics import TRACKING
from . import pace as paces
from .batch import Batch
from .read_audit import uncounted
from .references import JobReferences
from .stop_signal import StopSignal


@dataclass(frozen=True)
class Flow:
    """The rows that a query streams, and how its micro-batches become the rows of each output."""

    rows: DataFrame
    outputs: OutputFrames
    arrived: DataFrame
    """The rows of the queues, those that REJECT keeps out with their reason."""
    references: JobReferences
    """What lookup() reads."""
    untraceable: str = ""
    """The operator for which the job cannot tell which rows are late; empty: it can."""

    def remarks(self) -> Iterator[str]:
        """Yield what the owner should know of the plan."""
        yield from self.outputs.remarks()
        if self.untraceable:
            yield self.of_late_rows

    @property
    def of_late_rows(self) -> str:
        """Why late rows are only counted."""
        return (
            f"late rows are only counted, and not kept in {REJECTED!r}: behind {self.untraceable} "
            "of transform(), the job cannot tell which row of the queue a row was made of"
        )


def flow_of(
    spark: SparkSession,
    context: JobContext,
    reference: DataFrame | None = None,
    references: JobReferences | None = None,
) -> Flow:
    """Return what to stream; nothing runs yet. Raises JobError for rows that must not be.

    transform() and outputs() are called here, to look at their plans; outputs() is called again in
    each micro-batch. The rows that REJECT keeps out are counted, and read again: see writer.py.
    """
    verify_sink(spark, context)
    _verify_connector(spark, context)
    job, guarantee, settings = context.job, context.guarantee, context.settings
    references = references or JobReferences(spark, context)
    outputs = OutputFrames(context, reference, references)
    arrived = events(spark, context)
    if job.judges:
        arrived = tagging.tagged(arrived, context)
        guarantee.admit(arrived, settings)
    rows = outputs.transformed(tagging.passed(arrived) if job.judges else arrived)
    _verify_plan(rows, context)
    guarantee.admit(rows, settings)
    if job.split is None:
        frames: Frames = {"output": rows}
    else:  # a frame of no rows: outputs() may count them, which a stream does not allow
        with any_columns.prepared(spark, job, "outputs()"):
            given = spark.createDataFrame([], rows.schema)
            frames = outputs.split(arrivals.visible(given, job))
        for name in job.arrivals:
            arrivals.verify(frames[name], name)
        for frame in frames.values():
            any_columns.verify(frame, job, "outputs()")
        for name in (name for name in frames if name not in job.static):
            guarantee.admit_output(frames[name], settings)
    maker = "transform()" if job.split is None else "outputs()"
    for name, frame in frames.items():
        rule = job.merge.get(name)
        verify_columns(name, frame, job.output_columns[name], maker, rule)
        if isinstance(rule, Newest):
            merged_rows.verify(frame, name)
        elif rule is not None:  # a frame of no rows shows what it makes of rows
            wide = merged_rows.widened(frame, job.output_columns[name])
            given = spark.createDataFrame([], merged_rows.given_schema(wide.schema))
            merged_rows.called(rule, given, name, job.output_columns[name])
    _verify_late_of_archives(rows, job)
    lost = is_untraceable_at(analysed(rows), REJECTED) if job.rejects_late else ""
    proven = replace(outputs, unproven=unproven(context, frames))
    return Flow(arrivals.streamed(rows, job), proven, arrived, references, lost)


def _verify_late_of_archives(rows: DataFrame, job: Job) -> None:
    """Raise JobError for late rows that are to be rejected, and have no row of the queue."""
    rejecting = [name for name, one in job.archives.items() if one.late == REJECT]
    if rejecting and (lost := is_lost_at(analysed(rows), REJECTED)):
        raise JobError(
            f"STATIC[{rejecting[0]!r}] has late={REJECT!r}: behind {lost} of transform(), the job "
            "cannot tell which row of the queue a row was made of",
            'set late="table"; nothing was started',
            code=ErrorCode.PLAN,
        )


def _verify_connector(spark: SparkSession, context: JobContext) -> None:
    """Raise JobError for what SPYT's writer would replace instead of adding to it or merging it."""
    connector = in_use(spark, context.settings)
    why = connector.problem or "the configuration names SPYT"
    if context.job.merge and not connector.is_own:
        raise JobError(
            f"MERGE names {', '.join(context.job.merge)}, and only the job's own connector looks "
            f"rows up and deletes them; it does not run here: {why}",
            "use the Spark and the SPYT that pyproject.toml pins; nothing was started",
            code=ErrorCode.SPYT_VERSION,
        )
    if context.job.archives and (missing := unavailable(spark)):
        raise JobError(
            f"{', '.join(context.job.archives)} has a table per period, and the job's own writer "
            f"of static tables does not run here: {missing}",
            "use the Spark and the SPYT that pyproject.toml pins; nothing was started",
            code=ErrorCode.SPYT_VERSION,
        )
    if context.job.totals and not connector.is_own:
        raise JobError(
            f"{', '.join(context.job.totals)} has aggregate=, and only the job's own connector "
            f"adds to totals; it does not run here: {why}",
            "use the Spark and the SPYT that pyproject.toml pins; nothing was started",
            code=ErrorCode.SPYT_VERSION,
        )


def _verify_plan(rows: DataFrame, context: JobContext) -> None:
    """Raise JobError for a plan that does not go with the job's processing or with any stream."""
    job = context.job
    operator = stateful_operator(rows)
    if operator is not None and job.totals and not job.kind.is_stateful:
        raise JobError(
            f"transform() has an operator that needs state ({operator}), and the table keeps the "
            f"totals of {', '.join(job.totals)} (aggregate= in tables.py)",
            "return what each row contributes, e.g. events.select(key, F.lit(1).alias('count')): "
            "each task combines its rows of a key, and the table adds; outputs() may group the "
            "rows of a micro-batch",
            code=ErrorCode.PLAN,
        )
    if operator is not None and not job.kind.is_stateful:
        stateful = ", ".join(name for name, kind in PROCESSINGS.items() if kind.is_stateful)
        raise JobError(
            f"transform() has an operator that needs state ({operator}), and a job of processing "
            f"{job.processing} keeps none",
            "move it to outputs(), which sees the rows of one micro-batch, or set another "
            f"processing in job.py: {stateful}",
            code=ErrorCode.PLAN,
        )
    for node in analysed(rows).walk():
        if (name := node.state_function) is not None and not is_checked(name):
            raise JobError(
                f"applyInPandasWithState() gets {name} as it is: Spark would store null for a "
                "value that does not fit the state, and say nothing",
                f"write checked_state({name}) in its place, and `from ytstream import "
                "checked_state`",
                code=ErrorCode.PLAN,
            )
    read = sources(analysed(rows))
    if {queue for queue, _ in read} != {*context.settings.queues}:
        raise JobError(
            "transform() has to read the rows that it is given, and no other stream",
            "name each queue in `queues` of the configuration: the ledger covers only their rows",
            code=ErrorCode.PLAN,
        )
    if any(ids != dict(read)[queue] for queue, ids in read):
        raise JobError(
            "transform() joins the rows with themselves: Spark reads their queues as two streams",
            "group by the columns of that join; a union of the rows with themselves is possible",
            code=ErrorCode.PLAN,
        )
    verify_stream(rows, job.kind.output_mode)


def start(
    flow: Flow,
    context: JobContext,
    tablets: Tablets,
    epoch: Epoch,
    *,
    refused: TabletOverflow | None = None,
    stop: StopSignal | None = None,
    rows_at_first: int = 0,
    lock: Lock | None = None,
) -> tuple[StreamingQuery, Batch]:
    """Start the query of ``epoch``; return it, and the function that it calls for each micro-batch.

    ``lock`` gives the transaction of the job's lock. With `batch_seconds` the query's first batch
    reads up to ``rows_at_first`` of a partition; 0: not known.
    The trigger is always a processing time: SPYT's source does not support AvailableNow.
    """
    settings = context.settings
    # Batches run in a thread of Spark's, and a client keeps its transaction for all threads.
    own = replace(context, client=connect(settings))
    static_tables = StaticTables(epoch)
    static_tables.settle(own.client, settings)
    is_stateful = context.job.kind.is_stateful
    counted = _counted_by_ledger(flow, own) if is_stateful else 0
    disk = None if is_stateful else made_folder()
    # Spark wants the function before there is a query.
    started: Future[StreamingQuery] = Future()
    once = uncounted(flow.rows, settings.queues)
    pace = _pace(flow.rows.sparkSession, context, tablets, rows_at_first)
    batch = Batch(
        context=own,
        tablets=tablets,
        epoch=epoch,
        outputs=flow.outputs,
        static_tables=static_tables,
        query=started,
        disk=disk,
        uncounted=once,
        keeps_late=context.job.rejects_late and not flow.untraceable,
        refused=refused,
        pace=pace,
        is_own=in_use(flow.rows.sparkSession, settings).is_own,
        counted_states=counted,
        stop=stop or StopSignal(),
        references=flow.references,
        archives=_archives(context, tablets, epoch, lock),
    )
    uri = (
        f"yt:/{path_of(settings, epoch.number)}"
        if disk is None
        else disk_uri(disk.name, flow.rows.sparkSession, settings, tablets.java)
    )
    values = {**context.values, "checkpoint_uri": uri}
    milliseconds = round(settings.trigger_seconds * 1000)
    rows = _streamed(flow, context)
    writer = (
        rows.writeStream.foreachBatch(batch.callback(rows.sparkSession))
        .outputMode(context.job.kind.output_mode)
        .options(**spark_conf.filled(iter(spark_conf.WRITER[is_stateful]), values))
        .trigger(processingTime=f"{milliseconds} milliseconds")
    )
    # verify_stream() has seen the rows without the fence, which counts rows as no stream may.
    with explained_space(disk):
        query = start_unverified(writer, rows.sparkSession)
    started.set_result(query)
    return query, batch


def _counted_by_ledger(flow: Flow, context: JobContext) -> int:
    """Return how many operators with state the ledger counts the rows of; 0: Spark counts them.

    The ledger does from the number on that it has, where all of them can be. Spark counts where it
    has none, so the next start knows it.
    """
    spark, settings = flow.rows.sparkSession, context.settings
    found = countable_states(flow.rows) if settings.state_store != MEMORY else 0
    if found:
        head = positions.read_head(settings.ledger, context.client.select_rows)
        found = found if head is not None and head.state_rows is not None else 0
    spark.conf.set(TRACKING, not found)
    return found


def _streamed(flow: Flow, context: JobContext) -> DataFrame:
    """Return the rows that the query streams: those of the one output, where it can write them."""
    if not flow.outputs.are_streamed:
        return flow.rows
    rows = column_values.verified(flow.rows, "output", context.job.output_columns["output"])
    if context.job.archives:  # their writer counts, and takes only one attempt of each task
        return rows
    return context.guarantee.fenced(observed_writes(rows, "output"))


def _archives(
    context: JobContext, tablets: Tablets, epoch: Epoch, lock: Lock | None
) -> Archives | None:
    """Return what writes pieces of archives, and makes tables of them; None without archives."""
    settings = context.settings
    if not context.job.archives:
        return None
    sealing = replace(context, client=connect(settings, patient=False))
    tables = ArchiveTables(
        sealing, epoch, partial(committed, settings.ledger, tablets, epoch), lock
    )
    tables.settle()
    return Archives(tables, connect(settings))


def _pace(
    spark: SparkSession, context: JobContext, tablets: Tablets, rows: int
) -> paces.Pace | None:
    """Return the pace of the query's batches, which its first one heeds; None without one."""
    settings = context.settings
    if not in_use(spark, settings).is_own:
        return None
    wanted = settings.batch_seconds
    pace = None if wanted is None else paces.first(wanted, settings.max_rows_per_partition, rows)
    set_pace(settings, pace.rows if pace else 0, tablets.java)
    return pace
