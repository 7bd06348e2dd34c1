"""Where the job is, as one value: read from queues, ledger and Cypress, without a driver."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum, auto

from yt.common import YtError

from ytstream.cluster import account_usage, operation
from ytstream.cluster.account_usage import ResourceUsage
from ytstream.cluster.client import cluster_name, facts
from ytstream.cluster.operation import Operation, Run
from ytstream.cluster.timestamps import unix_seconds
from ytstream.instance import stop_request
from ytstream.instance.lock import InstanceLock
from ytstream.job import REJECTED, JobContext
from ytstream.ledger import batch_history, ledger_rows, positions
from ytstream.ledger.batch_history import LedgerRow
from ytstream.ledger.ledger_rows import BatchTimes, Head, KeyChanges, LookedUp, StoreFigures
from ytstream.ledger.offsets import Queue
from ytstream.provisioning import retention
from ytstream.recovery import spark_logs
from ytstream.recovery.checkpoint_repair import path_of
from ytstream.sealing import completeness
from ytstream.staging import staged_tables

from ..submitting import version_history
from ..submitting.version_history import DeployedVersion
from . import archive_status, sum_status
from .archive_status import ArchiveStatus
from .sum_status import SumStatus

LOOKED_AT = 100
"""Batches that are read: rejected rows are theirs."""
RECENT = 10
"""Those that are shown, and whose rows per second are counted."""
SHOWN = 5
"""Versions that are shown."""
_DAY = timedelta(days=1)
HOT_SHARE = 0.5
"""A tablet with this part of the waiting rows, or more, is one that the others do not help."""


class ProcessState(StrEnum):
    """The status of the last process of a job: FAILED has said why, KILLED has not."""

    NEVER = "never started"
    RUNNING = auto()
    ENDED = auto()
    FAILED = auto()
    KILLED = auto()


@dataclass(frozen=True)
class PartitionStatus:
    """One partition of one queue."""

    queue: str
    number: int
    first: int
    """Rows of the queue: the first one that is kept, and the one after the last."""
    end: int
    consumer: int
    """The row that the consumer reads next, and the one that the next batch does."""
    next: int
    seconds: float | None = None
    """How long the first row that waits has waited. None: no row waits, or it is not known."""
    kept_seconds: float | None = None
    """After how many seconds the queue drops rows by their age, read or not. None: it does not."""

    @property
    def trim_seconds(self) -> float | None:
        """How long the oldest unread row stays; None: none waits, or it is not known."""
        if not self.lag or self.seconds is None or self.kept_seconds is None:
            return None
        return max(0.0, self.kept_seconds - self.seconds)

    @property
    def lag(self) -> int:
        """How many rows wait."""
        return max(0, self.end - self.next)


@dataclass(frozen=True)
class FinishedBatch:
    """One batch of the ledger."""

    epoch: int
    batch: int
    number: int
    started: datetime
    ended: datetime
    read: int
    written: Mapping[str, int]
    rejected: Mapping[str, int]
    late: int
    ranges: Mapping[str, Mapping[int, tuple[int, int]]]
    limit: int = 0
    """The most rows of a partition that it could read; 0: `max_rows_per_partition`."""
    without_time: int = 0
    """Rows without an event time."""
    lookups: Mapping[str, LookedUp] = field(default_factory=dict)
    """Name of a reference -> what lookup() has read of it."""
    warned: Mapping[str, int] = field(default_factory=dict)
    """Reason -> rows that WARN has counted."""
    times: BatchTimes | None = None
    """How long its parts took; None: an older version ran it."""
    changes: Mapping[str, KeyChanges] = field(default_factory=dict)
    """Output with MERGE -> what happened to its keys."""

    @property
    def is_late_kept(self) -> bool:
        """Whether its late rows went to `rejected`."""
        return self.written.get(REJECTED, 0) > sum(self.rejected.values())

    @property
    def name(self) -> str:
        """Its name in the log."""
        return ledger_rows.batch_name(self.epoch, self.batch)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended - self.started).total_seconds()


@dataclass(frozen=True)
class StateSize:
    """What a job with state keeps."""

    rows: int | None
    """None: no batch has counted it."""
    bytes: int
    """In the checkpoint. A start reads all of it."""
    watermark: int
    """Milliseconds since 1970; 0: there is none yet."""
    store: StoreFigures | None = None
    """What the store took at the end of the last batch; None: no batch has told."""


@dataclass(frozen=True)
class UnpublishedTables:
    """Tables of static outputs that are not published."""

    waiting: int
    forgotten: Sequence[str]
    """Paths of those whose batch the ledger does not know any more."""


@dataclass(frozen=True)
class JobStatus:
    """The status of a job, read at one time."""

    time: datetime
    cluster: str
    partitions: Sequence[PartitionStatus]
    head: Head | None
    """None before the first start."""
    batches: Sequence[FinishedBatch]
    """The last batches, the newest one last."""
    process: ProcessState
    how: str
    """What the last process has said at its end."""
    holder: str
    """The process that holds the job's lock; empty without one."""
    epochs: int
    """Starts in the last day, without the first one of all."""
    connector: str = ""
    """What the process has said of its connector; empty where it has not."""
    state: StateSize | None = None
    static: UnpublishedTables | None = None
    operation: Operation | None = None
    runs: Sequence[Run] = ()
    versions: Sequence[DeployedVersion] = ()
    """Those that were submitted, the newest first, as far as they are recorded."""
    accounts: Sequence[ResourceUsage] = ()
    """What is used of the accounts that the job writes with, as far as this user may know."""
    archives: Sequence[ArchiveStatus] = ()
    """Outputs with a table per period."""
    sums: Sequence[SumStatus] = ()
    """Columns of outputs with totals that have an end."""

    @property
    def lag(self) -> int:
        """How many rows wait."""
        return sum(partition.lag for partition in self.partitions)

    @property
    def lag_seconds(self) -> float | None:
        """How long the row that waits longest has waited; 0 without one, None if not known."""
        known = [p.seconds for p in self.partitions if p.lag and p.seconds is not None]
        return max(known, default=None if self.lag else 0.0)

    @property
    def largest_share(self) -> float | None:
        """The part of the waiting rows that are in one tablet; None if none wait, or of one tablet.

        One task reads a tablet: the others cannot help it.
        """
        if not self.lag or len(self.partitions) < 2:
            return None
        return max(partition.lag for partition in self.partitions) / self.lag

    @property
    def is_in_one_tablet(self) -> bool:
        """Whether one of several tablets has most of the waiting rows."""
        share = self.largest_share
        return share is not None and share >= max(HOT_SHARE, 2 / len(self.partitions))

    @property
    def age(self) -> float | None:
        """Seconds since the last batch ended; None before the first one."""
        if not self.batches:
            return None
        return max(0.0, (self.time - self.batches[-1].ended).total_seconds())

    @property
    def recent(self) -> Sequence[FinishedBatch]:
        """The batches that are shown."""
        return self.batches[-RECENT:]

    @property
    def rate(self) -> float | None:
        """Rows per second while the recent batches were at work; None if none has taken time."""
        work = sum(batch.seconds for batch in self.recent)
        return sum(batch.read for batch in self.recent) / work if work > 0 else None

    def seconds_left(self, arriving: float = 0.0) -> float | None:
        """Return when no row would wait, with so many new rows per second; None: never."""
        if not self.lag:
            return 0.0
        rate = (self.rate or 0.0) - arriving
        return self.lag / rate if rate > 0 else None

    @property
    def rejected(self) -> Mapping[str, int]:
        """The rows that REJECT kept out of the batches that were looked at, by reason."""
        return _sum(batch.rejected for batch in self.batches)

    @property
    def warned(self) -> Mapping[str, int]:
        """The rows that WARN counted in the batches that were looked at, by reason."""
        return _sum(batch.warned for batch in self.batches)

    @property
    def late(self) -> int:
        """The late rows of the batches that were looked at."""
        return sum(batch.late for batch in self.batches)

    @property
    def are_late_kept(self) -> bool:
        """Whether the last late rows went to `rejected`."""
        late = [batch for batch in self.batches if batch.late]
        return bool(late) and late[-1].is_late_kept


def _sum(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for by_reason in counts:
        for reason, rows in by_reason.items():
            found[reason] = found.get(reason, 0) + rows
    return found


def read(context: JobContext) -> JobStatus:
    """Return where everything is now. Raises JobError for a damaged ledger."""
    client, settings, now = context.client, context.settings, datetime.now(UTC)
    found = positions.read(client, settings)
    head = found.begun
    rows = (
        batch_history.newest(client, settings.ledger, head, LOOKED_AT) if head is not None else []
    )
    batches = [done(row) for row in rows]
    partitions = [p for queue in found.queues for p in _partitions(context, queue, head, now)]
    process, how, holder = _process(context, head)
    seen = stop_request.of_job(context)
    since = now - _DAY
    return JobStatus(
        time=now,
        cluster=cluster_name(client),
        partitions=[replace(p, seconds=_waited(p, batches, context, now)) for p in partitions],
        head=head,
        batches=batches,
        process=process,
        how=how,
        holder=holder,
        epochs=(
            batch_history.epochs_since(client, settings.ledger, head, since)
            if head is not None
            else 0
        ),
        connector=stop_request.connector_of(context, head.epoch) if head is not None else "",
        state=_state(context, head),
        static=_static(context, head),
        operation=seen,
        runs=operation.runs(client, seen.id) if seen is not None else (),
        versions=version_history.read(client, settings, SHOWN),
        accounts=_accounts(context),
        archives=archive_status.read(context, now),
        sums=sum_status.sums(context.job, settings, head),
    )


def _accounts(context: JobContext) -> Sequence[ResourceUsage]:
    with suppress(YtError):
        return [*account_usage.of_job(context.client, context.settings)]
    return ()


def done(row: LedgerRow) -> FinishedBatch:
    """Return the batch of a row of the ledger."""
    return FinishedBatch(
        epoch=int(row["epoch"]),
        batch=int(row["batch"]),
        number=int(row["number"]),
        started=ledger_rows.time_of(row["started"]),
        ended=ledger_rows.time_of(row["ended"]),
        read=int(row["rows_read"]),
        written={str(name): int(count) for name, count in row["rows_written"].items()},
        rejected=ledger_rows.rejected_of(row),
        late=ledger_rows.late_of(row),
        ranges=ledger_rows.ranges_of(row),
        limit=ledger_rows.limit_of(row),
        without_time=ledger_rows.without_time_of(row),
        lookups=ledger_rows.lookups_of(row),
        warned=ledger_rows.warned_of(row),
        times=ledger_rows.times_of(row),
        changes=ledger_rows.changes_of(row),
    )


def _partitions(
    context: JobContext, queue: Queue, head: Head | None, now: datetime
) -> Sequence[PartitionStatus]:
    """Return the partitions of a queue, with the age of their first rows where rows have times."""
    ends = head.ends.get(queue.path, {}) if head is not None else queue.consumed
    kept = retention.oldest_age(context.client, queue.path)
    found = [
        PartitionStatus(
            queue=queue.path,
            number=p,
            first=lower,
            end=upper,
            consumer=queue.consumed.get(p, 0),
            next=ends.get(p, 0),
            kept_seconds=kept,
        )
        for p, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True))
    ]
    written = _written(context, queue.path, [p for p in found if p.lag])
    return [
        replace(p, seconds=max(0.0, now.timestamp() - written[p.number]))
        if p.number in written
        else p
        for p in found
    ]


def _written(context: JobContext, path: str, late: Sequence[PartitionStatus]) -> dict[int, int]:
    """Return when the first row of each partition that waits was written, by the rows' own times.

    Not every queue has them.
    """
    rows = {p.number: max(p.next, p.first) for p in late}
    found = completeness.timestamps(context.client, path, rows) or {}
    return {number: unix_seconds(timestamp) for number, timestamp in found.items()}


def _waited(
    partition: PartitionStatus, batches: Sequence[FinishedBatch], context: JobContext, now: datetime
) -> float | None:
    """Return how long the first waiting row has waited; without a time of its own, at most so long.

    A batch that has read less of a partition than a batch may has left no row there.
    """
    if not partition.lag or partition.seconds is not None:
        return partition.seconds
    most = context.settings.max_rows_per_partition
    for batch in reversed(batches):
        first, end = batch.ranges.get(partition.queue, {}).get(partition.number, (0, 0))
        if end - first < (batch.limit or most):
            return max(0.0, (now - batch.started).total_seconds())
    return None


def _process(context: JobContext, head: Head | None) -> tuple[ProcessState, str, str]:
    """Return the status of the process that has raised the epoch, its last word, and the holder.

    The last word of a process' name is another one each time that it names itself.
    """
    lock = InstanceLock(context.client, context.settings.consumer)
    holder = next((owner for _, owner, _ in lock.holders()), "")
    if head is None:
        return ProcessState.NEVER, "", holder
    ended = stop_request.end_of(context, head.owner)
    if ended is not None:
        return ProcessState.FAILED if ended.code else ProcessState.ENDED, ended.how, holder
    is_held = holder != "" and holder.rpartition(",")[0] == head.owner.rpartition(",")[0]
    return ProcessState.RUNNING if is_held else ProcessState.KILLED, "", holder


def _state(context: JobContext, head: Head | None) -> StateSize | None:
    if not context.job.kind.is_stateful or head is None or head.folder is None:
        return None
    client, folder = context.client, path_of(context.settings, head.folder)
    usage = facts(client, folder, ["recursive_resource_usage"])
    if usage is None:  # the next start refuses, and says what to do
        return StateSize(head.state_rows, 0, 0, head.store)
    size = int(usage["recursive_resource_usage"]["disk_space"])
    watermark = spark_logs.watermark(client, folder, head.batch) if head.batch >= 0 else 0
    return StateSize(head.state_rows, size, watermark, head.store)


def _static(context: JobContext, head: Head | None) -> UnpublishedTables | None:
    if not context.job.snapshots:
        return None
    client, settings = context.client, context.settings
    written = staged_tables.written(client, settings)
    named = staged_tables.named(client, settings, written)
    forgotten: set[staged_tables.StagedTable] = set()
    if head is not None:
        others = {table for table in written if table.epoch < head.epoch} - named.keys()
        forgotten = staged_tables.forgotten(client, settings, others, head.number)
    return UnpublishedTables(len(named), [table.path_in(settings) for table in sorted(forgotten)])
