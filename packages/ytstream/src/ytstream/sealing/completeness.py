"""Complete until: a time before which every row of the queues has been dealt with.

For each partition, use the `$timestamp` of the next unread row. Without an unread row, use the
cluster's time before the partition's end was read. Subtract a margin from both: a transaction takes
its timestamp before its rows are in the tablet, and rows of a queue are in the order of their
timestamps only with `commit_ordering=strong` (YTsaurus, "Ordered dynamic tables").
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from yt.common import YtError

from ..cluster.client import Client
from ..cluster.timestamps import unix_seconds
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import Job, JobContext
from ..ledger import positions
from ..ledger.ledger_rows import Head
from ..ledger.offsets import Queue
from ..ledger.row_timestamps import TIMESTAMP, row_timestamps
from ..recovery import spark_logs
from ..recovery.checkpoint_repair import path_of
from ..schema.periods import Archive
from ..staging import staged_tables

COMPLETE_UNTIL, WATERMARK = "ytstream_complete_until", "ytstream_watermark"
"""The attributes of an output: of kinds without state, and of those with it."""
MARGIN = timedelta(seconds=30)
"""How far a row may be behind in its tablet."""
PERIOD_SECONDS = 60.0


@dataclass(frozen=True)
class CompletenessMark:
    """A time before which every row has been processed, and the outputs that say so."""

    name: str
    """The attribute that says it."""
    time: datetime
    outputs: Mapping[str, str]
    """Output -> path; a static one is missing while a table of it waits for its publication."""

    @property
    def text(self) -> str:
        """The time as the attribute has it: texts sort as the times do."""
        return f"{self.time:%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class CompletenessWriter:
    """Writes the mark into the outputs of a running job once per period. Ignores failures."""

    _next: float = field(default_factory=lambda: time.monotonic() + PERIOD_SECONDS)
    _told: dict[str, datetime] = field(default_factory=dict)
    """What was true stays true: a row that waits may be older than the margin had to assume."""

    def tell(self, context: JobContext, now: float) -> None:
        """Write the attributes, if the last time was long enough ago."""
        if now < self._next:
            return
        self._next = now + PERIOD_SECONDS
        with suppress(YtError, OSError, JobError):  # a reader waits; the job does not
            found = read(context)
            for path in found.outputs.values():
                if path not in self._told or self._told[path] < found.time:
                    context.client.set(f"{path}/@{found.name}", found.text)
                    self._told[path] = found.time


def read(context: JobContext, *, as_written: bool = False) -> CompletenessMark:
    """Return what holds now. Raises JobError where nothing can be said.

    ``as_written``: of the rows as they were written, whatever the watermark is.
    """
    client, settings, job = context.client, context.settings, context.job
    is_watermark = has_watermark(job) and not as_written
    # In this order: rows come before the queues' ends, and may be trimmed once the head has them.
    latest = _second(int(client.generate_timestamp()))
    paths = () if is_watermark else settings.queues
    queues = [positions.queue(client, path, {}) for path in paths]
    head = positions.read_head(settings.ledger, client.select_rows)
    if head is None or head.folder is None:
        raise JobError(
            "the job has never run",
            "start it; `status` shows where it is",
            code=ErrorCode.NEVER_RUN,
        )
    # Of an archive they say it themselves: see archive_tables.py.
    late = {*_unpublished(context, head), *job.archives}
    outputs = {name: path for name, path in settings.outputs.items() if name not in late}
    if is_watermark:
        return CompletenessMark(WATERMARK, _watermark(context, head), outputs)
    queues = [positions.with_newer(client, queue, head) for queue in queues]
    times = [time for queue in queues for time in _waiting(client, queue, head)]
    return CompletenessMark(COMPLETE_UNTIL, min([latest, *times]) - MARGIN, outputs)


def has_watermark(job: Job) -> bool:
    """Return whether the watermark says how far a job is; totals in the state have none."""
    return job.kind.is_stateful and job.processing != "aggregate"


def bound(context: JobContext, archive: Archive) -> float:
    """Return a time before which all rows of an archive are there, as seconds since 1970.

    Raises JobError where nothing can be said.
    """
    return read(context, as_written=archive.by is None).time.timestamp()


def timestamps(client: Client, path: str, rows: Mapping[int, int]) -> dict[int, int] | None:
    """Return the timestamps of rows, given by partition; None for a queue without that column."""
    found = row_timestamps(client, path, rows.items())
    if found is None:
        return None
    return {partition: at for (partition, _), at in found.items() if at is not None}


def _waiting(client: Client, queue: Queue, head: Head) -> list[datetime]:
    """Return when the row was written that is read next, of each partition that has one."""
    if head.ids.get(queue.path, queue.id) != queue.id:
        raise JobError(
            f"queue {queue.path} was dropped and recreated",
            "`check` says what the job will do",
            code=ErrorCode.QUEUE_RECREATED,
        )
    if positions.is_moved(head, queue):
        raise JobError(
            f"queue {queue.path} was resharded",
            "`check` says what the job will do",
            code=ErrorCode.QUEUE_RESHARDED,
        )
    ends, next_ = head.ends.get(queue.path, {}), {}
    for partition, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True)):
        row = ends.get(partition, 0)
        if row < lower:
            raise JobError(
                f"{queue.path}, partition {partition}: rows {row} to {lower - 1} were trimmed "
                "before the job has read them",
                "`check` says what the job will do",
                code=ErrorCode.ROWS_TRIMMED,
            )
        if row < upper:
            next_[partition] = row
    found = timestamps(client, queue.path, next_)
    if found is None or found.keys() != next_.keys():
        raise JobError(
            f"rows of {queue.path} wait, and nothing tells since when",
            f"ask the queue's owner for the column {TIMESTAMP}, which the cluster fills in",
            code=ErrorCode.NO_TIMESTAMP,
        )
    return [_second(timestamp) for timestamp in found.values()]


def _watermark(context: JobContext, head: Head) -> datetime:
    """Return the watermark under which the last batch that happened ran."""
    batch, milliseconds = head.batch, 0
    if batch >= 0 and head.folder is not None:
        folder = path_of(context.settings, head.folder)
        metadata = spark_logs.planned(context.client, folder, batch).metadata
        milliseconds = int(metadata.get("batchWatermarkMs", 0))
    if milliseconds <= 0:
        raise JobError(
            "the job has no watermark yet",
            "wait for batches; transform() has to set one",
            code=ErrorCode.NO_WATERMARK,
        )
    return spark_logs.moment(milliseconds)


def _unpublished(context: JobContext, head: Head) -> set[str]:
    """Return the static outputs that lack a table of a batch that has happened."""
    if not context.job.static:
        return set()
    last = head.folder or 0, head.batch
    tables = staged_tables.written(context.client, context.settings)
    return {table.output for table in tables if (table.epoch, table.batch) <= last}


def _second(timestamp: int) -> datetime:
    return datetime.fromtimestamp(unix_seconds(timestamp), UTC)
