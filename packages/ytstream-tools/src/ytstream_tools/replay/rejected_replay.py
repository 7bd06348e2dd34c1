"""Rows of the output `rejected` that transform.py accepts by now: into the outputs, once.

The rows of one chunk go through REJECT, transform() and outputs() as they are now. What passes is
written through SPYT's sink into a tablet transaction of the runtime's own, which deletes those rows
from `rejected` and tells the ledger. So a replay next to the running job writes no row twice. It
keeps out a second replay and a `rewind` by a lock, and the job itself where its rows change.

A replay replaces no row: where the key is the position, as under `idempotent`, a rejected row stays
if an output has a row there. That one may be of another queue, recreated under the same path, whose
rows have the same positions (`rewind --overwrite`). Where an output has another key, nothing tells
which of two rows is newer: the person who replays has to choose, or MERGE says it. Rows before
which a `rewind` moves the job are the job's own to write: see reread.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ytstream.connector.java import Java, jvm_of
from ytstream.connector.spark_plan import analysed
from ytstream.connector.spyt import inside
from ytstream.connector.tablet_transactions import Tablets, Transaction
from ytstream.errors import JobError, RestartableError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance.lock import InstanceLock, alone, without_replays
from ytstream.job import REJECTED, Job, JobContext
from ytstream.ledger import ledger_rows, positions
from ytstream.outputs import sum_bounds
from ytstream.outputs.output_frames import Frames, computed
from ytstream.outputs.row_json import is_inexact
from ytstream.outputs.sink import write_outputs
from ytstream.query.pipeline import Flow, flow_of
from ytstream.query.references import JobReferences
from ytstream.rejected import tagging
from ytstream.schema.columns import key_of
from ytstream.spark.source import INNER_POSITION
from ytstream.spark.spark_errors import cause, explained_spark, is_of_the_rows

from . import archive_replay, rejected_table, replayed_moments, reread
from .archive_replay import ReplayedArchives
from .rejected_table import Key, RejectedTable, Rows
from .replay_counts import ReplayCounts
from .replayed_moments import Looked

_SEVERAL = frozenset(("Generate", "Expand", "Union"))
"""Operators that may make several rows of one, but for a join (Spark, logical plans)."""


def replay(
    spark: SparkSession, context: JobContext, flow: Flow, say: Callable[[str], None], *,
    replace: bool = False, remove_dropped: bool = False,
) -> str:  # fmt: skip
    """Replay all rejected rows; return how many passed and how many stay.

    With ``replace`` they may replace rows with the same key, and with ``remove_dropped`` those that
    go into no output leave `rejected`. Raises JobError as verify_job() and reread.read() do, and
    for a row that cannot be written. What was done before an error stays done.
    """
    verify_job(context.job)
    verify_keys(context, replace=replace)
    verify_alone(context)
    with _kept_apart(context):
        return _replayed(spark, context, flow, say, remove_dropped=remove_dropped)


@contextmanager
def _kept_apart(context: JobContext) -> Iterator[None]:
    """Keep out what would write the same rows, for as long as rows are replayed.

    That is a `rewind`: what was read of the ledger would be wrong after it. And the job itself, if
    its rows change: in an output with MERGE it may delete a key, in another table, while a replay
    writes an older row of it. The cluster sees no conflict then.
    """
    with without_replays(context):
        if not _is_exclusive(context.job):
            yield
            return
        with alone(context, "`replay-rejected`"):
            yield


def _replayed(
    spark: SparkSession, context: JobContext, flow: Flow, say: Callable[[str], None], *,
    remove_dropped: bool,
) -> str:  # fmt: skip
    tablets = Tablets(jvm_of(spark), context.settings)
    table, counts = RejectedTable(context), ReplayCounts(is_removing=remove_dropped)
    replays = _Replays(spark, context, flow, archive_replay.read(context))
    moments = replayed_moments.read(context, say)
    readings, last, most = reread.read(context), Key(), rejected_table.CHUNK
    while True:
        done, found = deepcopy(counts), Rows()
        try:
            with tablets.transaction() as transaction:
                found = table.read(transaction.select, last, most)
                if not found:
                    break
                found = moments.first(found)
                free = table.free(transaction.select, readings, found, counts)
                with explained_spark():
                    replaying = replays.at(moments.of(found[0]))
                    replaying.replay(tablets, transaction, free, counts)
        except (JobError, RestartableError) as error:
            if not is_of_the_rows(error):
                raise
            if len(found) == 1:
                raise _of_one_row(table, found[0], error) from error
            # Nothing was written: half of them, until one is left.
            counts, most = done, len(found) // 2
            continue
        last = table.key_of(found[-1])
        say(f"{counts.gone('went')}, {counts.stayed} are still rejected")
    return f"{counts.gone('went')}; {counts.left('stay', table.path)}"


def rehearse(
    spark: SparkSession, context: JobContext, flow: Flow, say: Callable[[str], None] = print, *,
    remove_dropped: bool = False,
) -> list[str]:  # fmt: skip
    """Return what `replay` would do now; changes nothing. Raises JobError where it would.

    Where rows may replace others it says so instead.
    """
    verify_job(context.job)
    select, counts = context.client.select_rows, ReplayCounts(is_removing=remove_dropped)
    replays = _Replays(spark, context, flow, archive_replay.read(context))
    moments = replayed_moments.read(context, say)
    table, readings, last = RejectedTable(context), reread.read(context), Key()
    while found := moments.first(table.read(select, last)):
        replaying = replays.at(moments.of(found[0]))
        replaying.count(table.free(select, readings, found, counts), counts)
        last = table.key_of(found[-1])
    keyed = _keyed(context)
    return [
        f"{counts.gone('would go')}; {counts.left('would stay', table.path)}",
        *(
            f"{context.settings.outputs[name]}: {rows} more"
            + (" at most: each replaces a row with its key, if there is one" * (name in keyed))
            for name, rows in counts.written.items()
        ),
        *(["it needs --replace: a replaced row may be newer"] if keyed else []),
        "nothing was changed",
    ]


def _keyed(context: JobContext) -> list[str]:
    """Return the outputs whose key is not the position, and in which a row replaces another."""
    key = RejectedTable(context).key
    return [
        name
        for name, columns in context.job.output_columns.items()
        if name not in (REJECTED, *context.job.totals, *context.job.merge)
        if key_of(columns) not in ((), key)
    ]


def verify_keys(context: JobContext, *, replace: bool) -> None:
    """Raise JobError if a replay may put an older row over a newer one, unless it is wanted."""
    keyed = [] if replace else _keyed(context)
    if keyed:
        where = ", ".join(context.settings.outputs[name] for name in keyed)
        raise JobError(
            f"a replay may put an older row over a newer one: {where} has a key of its own",
            "--replace (REPLACE=1) if rejected rows may replace those with the same key, or send "
            "the rows into a queue of the job again; nothing was changed",
            code=ErrorCode.REPLAY_UNSAFE,
        )


def verify_alone(context: JobContext) -> None:
    """Raise JobError if the job runs and its rows change or add up: both would write the same keys.

    The cluster refuses the later of two transactions that do: here a batch of the job. replay()
    holds the lock, this says so before Spark's start.
    """
    holders = InstanceLock(context.client, context.settings.consumer).holders()
    owner = next((owner for _, owner, _ in holders), "") if _is_exclusive(context.job) else ""
    if owner:
        raise JobError(
            f"the job runs ({owner}), and a replay changes the same rows or tables: one of them "
            "would fail",
            "`make stop`, then repeat this; nothing was changed",
            code=ErrorCode.ANOTHER_INSTANCE,
        )


def _is_exclusive(job: Job) -> bool:
    return bool(job.totals or job.merge or job.archives)


def verify_job(job: Job) -> None:
    """Raise JobError for a job that rejects no rows, keeps a state or has a table per batch."""
    if not job.reject:
        raise JobError(
            "this job rejects no rows",
            "REJECT in transform.py and job.py would say which",
            code=ErrorCode.NOT_FOR_THIS_JOB,
        )
    if job.kind.is_stateful:
        raise JobError(
            f"a job of processing {job.processing} replays no rows: its state has moved on, and "
            "they would be late or counted without the rows they belong to",
            "send the rows that transform.py accepts now into a queue of the job again while their "
            "event time is in front of the watermark; or `rewind`, which reads older rows again",
            code=ErrorCode.NOT_FOR_THIS_JOB,
        )
    archive_replay.verify_job(job)
    if job.snapshots:
        raise JobError(
            f"the outputs {', '.join(job.snapshots)} are static: each of their tables "
            "belongs to one micro-batch, so a replay cannot write to it",
            "put the rows that transform.py accepts now into a queue of the job again",
            code=ErrorCode.NOT_FOR_THIS_JOB,
        )


@dataclass
class _Replays:
    """Replays of rows that have looked up references at the same moment."""

    spark: SparkSession
    context: JobContext
    flow: Flow
    """Of rows for which the references are read as they are now."""
    archives: ReplayedArchives
    _last: tuple[Looked, _Replay] | None = None

    def at(self, looked_up: Looked) -> _Replay:
        """Return the replay of rows whose batch has looked that up."""
        if self._last is None or self._last[0] != looked_up:
            flow = self._flow(looked_up)
            made = _Replay(self.spark, self.context, flow, self.archives)
            self._last = looked_up, made
        return self._last[1]

    def _flow(self, looked_up: Looked) -> Flow:
        if not looked_up:
            return self.flow
        references = JobReferences(self.spark, self.context, at=looked_up)
        return flow_of(self.spark, self.context, self.flow.outputs.reference, references)


@dataclass(frozen=True)
class _Replay:
    """Rejected rows, as transform.py judges and makes them now."""

    spark: SparkSession
    context: JobContext
    flow: Flow
    archives: ReplayedArchives

    @property
    def table(self) -> RejectedTable:
        """Where the rows are."""
        return RejectedTable(self.context)

    def count(self, found: Rows, counts: ReplayCounts) -> None:
        """Count what ``replay`` would do with the rows of ``found``."""
        outputs, found = self.flow.outputs, self._placed(found, counts)
        with self._judged(found, counts) as (rows, _):
            if rows is None:
                return
            with outputs.finished(outputs.transformed(rows)) as finished:
                for name, frame in outputs.of(finished).items():
                    with computed(frame) as made:  # a count alone might skip a column that fails
                        counts.written[name] = counts.written.get(name, 0) + made.count()

    def replay(
        self, tablets: Tablets, transaction: Transaction, found: Rows,
        counts: ReplayCounts,
    ) -> None:  # fmt: skip
        """Write the rows of ``found`` that pass now, and delete them."""
        job, started, written = self.context.job, datetime.now(UTC), dict[str, int]()
        found = self._placed(found, counts)
        with self._judged(found, counts) as (rows, deleted):
            if rows is not None:
                java, id_, proxy = tablets.java, transaction.id, transaction.proxy
                passed = self.flow.outputs.transformed(rows)
                with self.flow.outputs.finished(passed) as finished, inside(java, id_, proxy):
                    frames = self.flow.outputs.of(finished)
                    written = dict(self._write(frames, transaction, java))
                    if job.archives:
                        written |= self.archives.write(frames, transaction, java)
        if deleted:
            transaction.modify(self.table.path, job.output_columns[REJECTED], (), deleted)
            row = _row({**written, REJECTED: -len(deleted)}, started)
            transaction.modify(self.context.settings.ledger, ledger_rows.COLUMNS, [row])

    def _write(self, frames: Frames, transaction: Transaction, java: Java) -> Mapping[str, int]:
        """Write the rows; where totals grow, the head gets their new bounds. The job is stopped."""
        select, path = transaction.select, self.context.settings.ledger
        head = positions.read_head(path, select) if self.context.job.totals else None
        sums = sum_bounds.before(self.context, head.sums if head else {}, is_first=True)
        written = write_outputs(frames, self.context, java, 0, sums, is_first=True)
        if head is not None:
            row = ledger_rows.head_row(replace(head, sums=written.sums))
            transaction.modify(path, ledger_rows.COLUMNS, [row])
        return written.rows

    def _placed(self, found: Rows, counts: ReplayCounts) -> Rows:
        """Return those of ``found`` for which archives have a period; count the others."""
        if not (found and self.context.job.archives):
            return found
        rows = tagging.passed(self._tagged(found, alone=True))
        frames = self.flow.outputs.split(self.flow.outputs.transformed(rows))
        outside = self.archives.outside(frames, len(found))
        counts.outside += len(outside)
        return [row for number, row in enumerate(found) if number not in outside]

    @contextmanager
    def _judged(self, found: Rows, counts: ReplayCounts) -> Iterator[tuple[DataFrame | None, Rows]]:
        """Give the rows that go into the outputs, or None, and the keys that leave `rejected`.

        Counts all rows of ``found``.
        """
        dropped, key_of_row = set[Key](), self.table.key_of
        if not found:
            yield None, []
            return
        with computed(self._tagged(found)) as rows:
            deleted = self._keys(rows)
            passed = {*map(key_of_row, deleted)}
            chosen = [row for row in found if key_of_row(row) in passed]
            if self._may_drop(rows, len(chosen)):
                dropped = {*map(key_of_row, self._dropped(chosen))}
            counts.rejected += len(found) - len(chosen)
            counts.inexact += sum(is_inexact(row["row"]) for row in found)
            counts.dropped += len(dropped)
            if dropped and not counts.is_removing:
                deleted = [key for key in deleted if key_of_row(key) not in dropped]
            counts.passed += len(deleted)
            yield (tagging.passed(rows) if len(dropped) < len(chosen) else None), deleted

    def _keys(self, rows: DataFrame) -> Rows:
        """Return the keys of the rows that REJECT accepts."""
        names = {name: name for name in self.table.key} | INNER_POSITION
        accepted = rows.filter(F.col(tagging.REASON).isNull())
        chosen = accepted.select(*(names[name] for name in self.table.key))
        return [{name: row[names[name]] for name in self.table.key} for row in chosen.collect()]

    def _made(self, rows: DataFrame) -> int:
        """Return how many rows transform() makes of those that REJECT accepts."""
        with computed(self.flow.outputs.transformed(tagging.passed(rows))) as made:
            return made.count()

    def _may_drop(self, rows: DataFrame, count: int) -> bool:
        """Return whether some of the ``count`` accepted rows may go nowhere.

        Equal counts say nothing where one row may become several, or where outputs() chooses.
        """
        if self.context.job.split is not None or self._made(rows) != count:
            return True
        plan = analysed(self.flow.outputs.transformed(tagging.passed(rows)))
        names = [node.name for node in plan.walk()]
        joins = names.count("Join") - (self.context.job.processing == "join")  # its keys are unique
        return joins > 0 or not _SEVERAL.isdisjoint(names)

    def _dropped(self, found: Rows) -> Rows:
        """Return those of ``found``, which REJECT accepts, that go into no output.

        The rows of an output need not say which row each is made of. So each row has a task of its
        own, in which all rows that are made of it stay, unless a shuffle is between.
        """
        rows = tagging.passed(self._tagged(found, alone=True))
        made = self.flow.outputs.transformed(rows)
        frames = [*self.flow.outputs.split(made).values()]
        if not all(_is_narrow(frame, len(found)) for frame in frames):
            if not _is_narrow(made, len(found)):
                return self._dropped_halves(found)
            frames = [made]  # outputs() sums rows, for instance
        task = F.spark_partition_id().alias("task")
        kept = {row.task for frame in frames for row in frame.select(task).distinct().collect()}
        return [row for number, row in enumerate(found) if number not in kept]

    def _dropped_halves(self, found: Rows) -> Rows:
        """Return what ``_dropped`` does: try halves, as long as one makes fewer rows than it has.

        This takes many jobs of Spark, and a row that becomes several may hide one that is dropped.
        """
        with computed(self._tagged(found)) as rows:
            made = self._made(rows)
        if made >= len(found):
            return []
        if made == 0:
            return found
        half = len(found) // 2
        halves = found[:half], found[half:]
        return [row for part in halves for row in self._dropped_halves(part)]

    def _tagged(self, found: Rows, *, alone: bool = False) -> DataFrame:
        """Return the rows as they came out of their queues, as REJECT judges them now.

        With ``alone`` the task of each has its number in ``found``. A row whose JSON is damaged is
        skipped.
        """
        queue = [name for name in ("queue_id",) if name in self.table.key]
        columns = [*queue, *INNER_POSITION, "reason", "row"]
        types = [*("string" for _ in queue), "long", "long", "string", "string"]
        schema = ", ".join(f"{name} {kind}" for name, kind in zip(columns, types, strict=True))
        rows = [(number, *(row[c] for c in columns)) for number, row in enumerate(found)]
        frame = self.spark.createDataFrame(rows, f"number long, {schema}")
        if alone:
            tasks = self.spark.range(0, len(found), 1, len(found))
            frame = tasks.join(F.broadcast(frame), F.col("id") == F.col("number")).drop("id")
        fields = [
            self.flow.arrived.schema[column.name] for column in self.context.job.queue_columns
        ]
        arrived = tagging.restored(frame.drop("number"), StructType(fields)).drop(tagging.REASON)
        position = {name: F.col(INNER_POSITION[name]) for name in self.context.guarantee.position}
        return tagging.tagged(arrived.withColumns(position), self.context)


def _is_narrow(frame: DataFrame, tasks: int) -> bool:
    return bool(frame.rdd.getNumPartitions() == tasks)


def _of_one_row(
    table: RejectedTable, row: Mapping[str, Any], error: JobError | RestartableError
) -> JobError:
    """Return the error of a row that cannot be written."""
    queue = row.get("queue_id", table.context.settings.queues[0])
    why = cause(str(error.__cause__ or error))
    return JobError(
        f"row {row['row_index']} of {queue}, partition {row['tablet_index']}, cannot be replayed "
        f"from {table.path}: {why}",
        "correct transform.py for this row, or keep such rows out with REJECT; the rows before it "
        "were replayed, and it stays where it is",
        code=ErrorCode.BATCH_FAILED,
    )


def _row(written: Mapping[str, int], started: datetime) -> dict[str, Any]:
    """Return the row of a replay: rejected rows that went into the outputs after all."""
    now = datetime.now(UTC)
    return {
        "kind": "replay",
        "number": ledger_rows.microseconds(now),
        "epoch": 0,
        "batch": -1,
        "rows_read": 0,
        "rows_written": dict(written),
        "started": ledger_rows.microseconds(started),
        "ended": ledger_rows.microseconds(now),
    }
