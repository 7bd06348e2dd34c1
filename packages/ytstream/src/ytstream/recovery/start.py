"""Before every start: one transaction that says where the query begins, and whose it is.

SPYT does not check whether the rows an offset names still exist: a read below a queue's first row
returns the first rows there are, again and without an error (YtQueueUtils). And whether Spark's
logs tell the truth depends on where a driver died. So the head of the ledger decides, and the
checkpoint and the consumer are made to agree with it:

1. Read and decide; a refusal changes nothing.
2. Raise the epoch: from here on no older process can commit.
3. Read and decide again, and make the epoch's checkpoint folder.
4. In one transaction write the head and move the consumer: the only commit point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from yt.common import YtError

from ..cluster.client import Client
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger import ledger_rows, positions
from ..ledger.ledger_rows import Head, Move
from ..ledger.offsets import ByQueue, Queue, Rows, ahead, behind
from ..ledger.positions import Snapshot
from ..ownership import job_marker, job_record, output_marks
from ..settings.job_settings import Settings
from . import (
    added_queue,
    added_totals,
    checkpoint_repair,
    emptied_totals,
    epoch,
    resharded_queue,
    state_check,
)
from .epoch import Epoch

if TYPE_CHECKING:
    from ..connector.tablet_transactions import Tablets

_ROWS_AT_ONCE = 10_000
"""Rows of the ledger that one request removes."""


@dataclass(frozen=True)
class StartPlan:
    """Where the next batch begins."""

    rows: Rows
    """Of each queue and partition."""
    head: Head
    """The head as it was found; of an empty folder without a batch where there was none."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Notes of rows that are skipped, and of a consumer that something else has moved."""
    move: Move | None = None
    """Where the next batch does not begin where the last one ended."""
    queues: tuple[Queue, ...] = ()
    """The queues as they were found."""

    @property
    def said(self) -> tuple[str, ...]:
        """All that there is to say, a line each."""
        return *self.notes, *self.warnings


def prepare(context: JobContext, tablets: Tablets, mine: Epoch) -> tuple[Epoch, tuple[str, ...]]:
    """Commit a start; return its epoch, and what was done, a line each. See claim() and start()."""
    mine = claim(context, tablets, mine)
    return mine, start(context, tablets, mine).said


def claim(context: JobContext, tablets: Tablets, mine: Epoch, connector: str = "") -> Epoch:
    """Raise the epoch, if a start may follow, and return it.

    ``connector`` is what `status` says of the connector.

    Raises JobError when only a person can decide; nothing was changed then.
    """
    decide(context, positions.read(context.client, context.settings))
    return epoch.raise_epoch(context.settings.ledger, tablets, mine, connector=connector)


def start(context: JobContext, tablets: Tablets, mine: Epoch) -> StartPlan:
    """Commit the start of the epoch ``mine``; return where it begins."""
    found = positions.read(context.client, context.settings)
    plan = decide(context, found)
    begin(context, tablets, mine, found, plan)
    job_record.write(context)
    return plan


def preview(context: JobContext) -> tuple[str, ...]:
    """Return what prepare() would do now, a line each, and do none of it. Raises as it would."""
    return decide(context, positions.read(context.client, context.settings)).said


def decide(context: JobContext, found: Snapshot, *, migrating: bool = False) -> StartPlan:
    """Return where the next batch begins; writes nothing.

    ``migrating``: with another guarantee, other outputs, without some queue or behind a reshard.
    Raises JobError for a ledger or a consumer of another job, for a state that does not fit, for a
    queue that is shorter than the job has read or whose rows may come late, and, under
    ``on_data_loss = "fail"``, for rows trimmed before they were read.
    """
    settings = context.settings
    head = found.begun
    if head is None:
        job_marker.verify_owner(context, found)
        job_marker.verify_ledger(context, found)
        plan = _first(settings, found)
    else:
        job_marker.verify_job(context, head)
        emptied_totals.verify_swapped(head)
        job_marker.verify_owner(context, found)
        if not migrating:
            job_marker.verify_declaration(context, head)
        job_marker.verify_queues(context, found, head)
        resharded_queue.verify_layouts(found, head, migrating=migrating)
        added_totals.verify_state(context, head)
        state_check.verify_state(context, head)
        plan = _continued(context, found, head)
    output_marks.verify_outputs(context, found)
    plan = _after_gaps(settings, found, plan)
    late = added_queue.verify_late_rows(context, found.queues, plan.head, plan.rows)
    return replace(plan, warnings=(*plan.warnings, *late), queues=found.queues)


def begin(
    context: JobContext, tablets: Tablets, mine: Epoch, found: Snapshot, plan: StartPlan
) -> None:
    """Make the folder, then name it in the head and move the consumer, in one transaction.

    Raises SupersededError for a foreign epoch, RestartableError when the consumer moves meanwhile.
    """
    client, settings = context.client, context.settings
    stateful = context.job.kind.is_stateful
    batch = checkpoint_repair.new_folder(
        client, settings, plan.head, mine.number, plan.rows, stateful=stateful
    )
    with tablets.transaction() as transaction:
        head = epoch.verify_epoch(positions.read_head(settings.ledger, transaction.select), mine)
        head = replace(head, folder=mine.number, batch=batch, timestamp=transaction.timestamp)
        after = _begun(context, found, plan, head)
        moves = [ledger_rows.move_row(after.epoch, plan.move)] if plan.move else []
        transaction.modify(
            settings.ledger, ledger_rows.COLUMNS, [ledger_rows.head_row(after), *moves]
        )
        for queue, rows in zip(found.queues, plan.rows, strict=True):
            for partition, row in rows.items():
                if (old := queue.consumed.get(partition, 0)) != row:
                    transaction.advance(settings.consumer, queue.path, partition, old, row)
        positions.forget_removed(transaction, settings.consumer, client, found.queues)
    job_marker.mark(context, found)
    checkpoint_repair.remove_old(client, settings, mine.number, plan.head.folder)
    _remove_old_rows(client, settings.ledger, after)


def _remove_old_rows(client: Client, path: str, head: Head) -> None:
    """Remove the batch rows beyond the number that the ledger keeps, if that has become smaller."""
    last = head.number - ledger_rows.kept(head)
    with suppress(YtError):  # the next start tries again
        for row in client.select_rows(ledger_rows.first_query(path)) if last > 0 else ():
            for start in range(int(row["number"]), last + 1, _ROWS_AT_ONCE):
                numbers = range(start, min(start + _ROWS_AT_ONCE, last + 1))
                keys = [{"kind": "batch", "number": number} for number in numbers]
                client.delete_rows(path, keys)


def _begun(context: JobContext, found: Snapshot, plan: StartPlan, head: Head) -> Head:
    """Return ``head`` where the plan begins.

    Queues that the configuration does not name stay in it: the consumer forgets a partition in
    which it was never moved, and an older driver may move it.
    """
    rows = {queue.path: rows for queue, rows in zip(found.queues, plan.rows, strict=True)}
    removed = [path for path in plan.head.ids if path not in rows]
    ids = {queue.path: queue.id for queue in found.queues}
    retired = {queue.path: _retired(plan.head, queue) for queue in found.queues}
    layouts = {queue.path: queue.layout for queue in found.queues if queue.layout is not None}
    after = replace(
        head,
        ends=rows | {path: plan.head.ends.get(path, {}) for path in removed},
        ids=ids | {path: plan.head.ids[path] for path in removed},
        marker=job_marker.marker_of(context),
        layouts={**plan.head.layouts, **layouts},
        retired={**plan.head.retired, **retired},
        removed=frozenset(removed),
        state_rows=None,
        state_since={},
        store=None,
        # Those of totals that a rewind has emptied go, and those that `migrate` has asked for come.
        sums={path: head.sums.get(path, known) for path, known in plan.head.sums.items()},
    )
    if not context.job.kind.is_stateful:
        return replace(after, state_since=_counted_since(context, found, plan, rows))
    if head.batch < 0:  # an empty folder
        return replace(after, state_rows=0, state_since=rows)
    # Rows that moved cannot be named: nobody knows from which rows on the state is made.
    known = {} if found.renumbered else plan.head.state_since
    since = rows | dict(known) if known else {}
    return replace(after, state_rows=plan.head.state_rows, state_since=since)


def _counted_since(context: JobContext, found: Snapshot, plan: StartPlan, rows: ByQueue) -> ByQueue:
    """Return the rows from which on totals in tables count; empty where nobody knows any more.

    A rewind back has emptied the tables; a skip leaves what they have.
    """
    known = dict(plan.head.state_since)
    if not context.job.totals or found.renumbered:
        return {}
    is_known = found.begun is None or known
    return {**rows, **known} if is_known else {}


def _retired(head: Head, queue: Queue) -> dict[int, int]:
    """Return the partitions that the queue has lost, and up to which row they were read."""
    if head.ids.get(queue.path) != queue.id:
        return {}
    read = {**head.retired.get(queue.path, {}), **head.ends.get(queue.path, {})}
    return {partition: row for partition, row in read.items() if partition >= len(queue.upper)}


def _first(settings: Settings, found: Snapshot) -> StartPlan:
    """Return the first start: where the consumer is, or where the configuration says."""
    head, notes, rows = found.head or Head(), [], []
    for queue in found.queues:
        first, note = _first_rows(queue, settings)
        rows.append(first)
        notes += note
    return StartPlan(rows, replace(head, batch=-1), tuple(notes))


def _continued(context: JobContext, found: Snapshot, head: Head) -> StartPlan:
    """Return the start where the head is. Raises as _of_the_consumer() does."""
    rows, notes, warnings = [], job_marker.remarks(context, head), list[str]()
    for queue in found.queues:
        if queue.path in found.renumbered:  # and all its rows were read: see resharded_queue
            first = dict(enumerate(queue.upper))
            notes.append(resharded_queue.applied(queue))
        elif queue.path in head.ends:
            first = dict(head.ends[queue.path])
            warnings += _of_the_consumer(context.settings, head, queue, first)
        else:
            first, note = _first_rows(queue, context.settings)
            notes += note
        rows.append(first)
    return StartPlan(rows, head, tuple(notes), tuple(warnings))


def _of_the_consumer(
    settings: Settings, head: Head, queue: Queue, ends: Mapping[int, int]
) -> Iterator[str]:
    """Yield what to say of a consumer that the start moves to the ``ends`` of the ledger.

    In SPYT's transaction it moves with the head. So one beyond the head was moved by hand: raises
    JobError. Elsewhere SPYT moves it as well, also after another driver's start: only the ledger
    says which rows were read.
    """
    # By the guarantee that the rows were read in: `migrate` may be about another one.
    is_exact = head.marker.get("guarantee") == "transactional"
    if moved := ahead(queue, ends):
        places = ", ".join(
            f"partition {p}: row {queue.consumed[p]}, the ledger has {ends.get(p, 0)}"
            for p in moved
        )
        rows = " ".join(f"{queue.path}:{p}={queue.consumed[p]}" for p in moved)
        skip = (
            f"to skip those rows: `rewind rows {rows}`. If the ledger is an older copy, their "
            "batches have happened, and only this writes nothing twice"
        )
        # A queue that comes back may have been read under another guarantee than the head's.
        if is_exact and queue.path not in head.removed:
            back = [
                f"yt advance-queue-consumer {settings.consumer} {queue.path} "
                f"--partition-index {p} --new-offset {ends.get(p, 0)}"
                for p in moved
            ]
            raise JobError(
                f"the consumer was moved forward on {queue.path}, {places}",
                "\n     ".join(
                    [skip, "to read them, if it is not, move the consumer back:", *back]
                ),
                code=ErrorCode.CONSUMER_MOVED,
            )
        yield (
            f"the consumer was ahead of the ledger on {queue.path}, {places}: moved back; {skip}"
        )
    if is_exact and (moved := behind(queue, ends)):
        yield (
            f"the consumer was behind the ledger on {queue.path}, partition "
            f"{', '.join(map(str, moved))}: moved to where the ledger is"
        )


def _after_gaps(settings: Settings, found: Snapshot, plan: StartPlan) -> StartPlan:
    """Return the plan behind rows that were trimmed, for all partitions."""
    starts, gaps, skipped = [], [], dict[str, dict[int, tuple[int, int]]]()
    for queue, begins in zip(found.queues, plan.rows, strict=True):
        rows = dict(begins)
        bounds = dict(enumerate(zip(queue.lower, queue.upper, strict=True)))
        for partition in sorted({*rows, *bounds}):
            row = rows.setdefault(partition, 0)
            lower, upper = bounds.get(partition, (0, 0))
            if row > upper:
                raise JobError(
                    f"queue {queue.path}, partition {partition} ends at row {upper}, the job has "
                    f"read up to row {row}: the queue or its tablets were recreated",
                    "use `rewind`: `earliest` reads all its rows, `latest` the next ones",
                    code=ErrorCode.QUEUE_RECREATED,
                )
            if row < lower:
                gaps.append(
                    f"{lower - row} rows of {queue.path} were trimmed before this job read them: "
                    f"partition {partition}, rows {row} to {lower - 1}"
                )
                rows[partition] = lower
                skipped.setdefault(queue.path, {})[partition] = row, lower
        starts.append(rows)
    if gaps and settings.on_data_loss == "fail":
        raise JobError(
            "; ".join(gaps),
            'they cannot be recovered; set on_data_loss = "skip" to continue after the gap',
            code=ErrorCode.ROWS_TRIMMED,
        )
    move = Move("skip", skipped) if skipped else None
    return replace(plan, rows=starts, warnings=(*plan.warnings, *gaps), move=move)


def _first_rows(queue: Queue, settings: Settings) -> tuple[dict[int, int], list[str]]:
    """Return where a queue begins that the ledger does not know, and what to say of it."""
    if queue.consumed:  # read before: `start_from` is for queues that are new to the consumer
        rows = {**dict.fromkeys(range(len(queue.upper)), 0), **queue.consumed}
        place = "where its consumer is"
    else:
        rows = dict(enumerate(queue.lower if settings.start_from == "earliest" else queue.upper))
        place = f"its {settings.start_from} rows"
    places = ", ".join(map(str, rows.values()))
    return rows, [f"first read of {queue.path}: from {place}, by partition {places}"]
