"""The tables of `status`: queues, consumer and ledger, the lag, the last batches, the operation."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ytstream.cluster import operation
from ytstream.cluster.timestamps import unix_seconds
from ytstream.declaration.lookups import TABLE
from ytstream.job import JobContext
from ytstream.recovery import spark_logs
from ytstream.staging import staged_tables
from ytstream.text_table import Cell, counted, duration, table

from ..submitting.version_history import DeployedVersion, StartState
from . import job_status
from .alert_limits import TOTAL_SHARE
from .job_status import RECENT, FinishedBatch, JobStatus, PartitionStatus, ProcessState

__all__ = ["RECENT", "status", "text"]


def status(context: JobContext) -> str:
    """Return the tables of partitions and of batches, the lag, and how the last process ended."""
    return text(context, job_status.read(context))


def text(context: JobContext, found: JobStatus) -> str:
    """Return the status as text for people."""
    return "\n".join(
        (
            *_queues(context, found),
            *_batches(context, found),
            *_state(found),
            *_operation(context, found),
            *_versions(found),
        )
    )


def _queues(context: JobContext, found: JobStatus) -> Iterator[str]:
    """Yield a table of each partition's rows, both offsets, and the lag; then the whole lag.

    ``next`` is the row the next batch starts with, by the ledger; the consumer may be behind.
    """
    header = ["queue", "partition", "first", "end", "consumer", "next", "lag", "seconds"]
    drops = any(p.kept_seconds is not None for p in found.partitions)
    yield table([*header, *(["trimmed in"] if drops else [])], [
        (
            *(p.queue, p.number, p.first, p.end, p.consumer, p.next, p.lag),
            "" if p.seconds is None else round(p.seconds),
            *([_left(p)] if drops else []),
        )
        for p in found.partitions
    ])  # fmt: skip
    yield ""
    where = f"cluster {found.cluster} at {context.settings.proxy}"
    yield f"{where}; lag: {counted(found.lag, 'row')}{_waiting(found)}"
    for path in sorted(found.head.removed) if found.head else ():
        yield f"{path} is not read any more; back, it continues where it was"


def _left(partition: PartitionStatus) -> str:
    """Return how long the oldest unread row stays in the queue."""
    if partition.trim_seconds is not None:
        return duration(partition.trim_seconds)
    return "not known" if partition.lag and partition.kept_seconds is not None else ""


def _waiting(found: JobStatus) -> str:
    """Return how long rows wait, and when none will; empty where that is not known."""
    waited, left = found.lag_seconds, found.seconds_left()
    if not found.lag:
        return ""
    share = found.largest_share
    return "".join(
        (
            "" if waited is None else f", the first for {duration(waited)}",
            f"; {100 * (share or 0):.0f}% of them in one tablet" if found.is_in_one_tablet else "",
            "" if left is None else f"; without new rows caught up after {duration(left)} of work",
        )
    )


def _batches(context: JobContext, found: JobStatus) -> Iterator[str]:
    """Yield a table of the last batches, the newest last, and how fast they were."""
    if not found.recent:
        return
    outputs = list(context.job.outputs)
    late = ["late"] if context.job.kind.is_stateful else []
    header = ("batch", "ended (UTC)", "rows read", *outputs, *late, "seconds")
    yield ""
    yield table(header, [_line(batch, outputs, late) for batch in found.recent])
    yield ""
    yield _speed(found.recent)
    yield from _lookups(found.recent)
    yield from _changes(found.recent)
    if without_time := sum(batch.without_time for batch in found.batches):
        yield (
            f"without an event time in the last {counted(len(found.batches), 'batch')}: "
            f"{without_time}; a rule of REJECT keeps such rows in `rejected`"
        )
    if rows := found.late:
        read = sum(batch.read for batch in found.batches)
        where = "in `rejected`" if found.are_late_kept else "only counted"
        yield (
            f"late in the last {counted(len(found.batches), 'batch')}: {rows}, "
            f"{100 * rows / max(read, 1):.1f}% of the rows read; they are {where}"
        )
    for word, counts in (("rejected", found.rejected), ("warned of", found.warned)):
        if counts:
            reasons = [f"{rows} {reason}" for reason, rows in sorted(counts.items())]
            yield f"{word} in the last {counted(len(found.batches), 'batch')}: {', '.join(reasons)}"


def _lookups(batches: Sequence[FinishedBatch]) -> Iterator[str]:
    """Yield how each reference is read, and how much was looked up and not found."""
    for name, last in batches[-1].lookups.items():
        if last.by == TABLE:
            yield f"reference {name}: read whole, as of {_moment(last.timestamp)}"
            continue
        used = [batch.lookups[name] for batch in batches if name in batch.lookups]
        rows, missing = sum(one.rows for one in used), sum(one.missing for one in used)
        part = f" ({100 * missing / rows:.1f}%)" if rows else ""
        hits = sum(one.hits for one in used)
        cached = f"{hits} from the cache, " if hits else ""
        yield (
            f"reference {name}: by key, in the last {counted(len(used), 'batch')} "
            f"{counted(rows, 'row')} with {counted(sum(one.keys for one in used), 'key')}, "
            f"{missing} not found{part}, {cached}"
            f"{sum(one.milliseconds for one in used) / 1000:.1f} s of waiting"
        )


def _changes(batches: Sequence[FinishedBatch]) -> Iterator[str]:
    """Yield what MERGE did to the keys of each output."""
    for name in batches[-1].changes:
        used = [batch.changes[name] for batch in batches if name in batch.changes]
        yield (
            f"keys of {name} in the last {counted(len(used), 'batch')}: "
            f"{sum(one.changed for one in used)} changed, {sum(one.removed for one in used)} "
            f"removed, {sum(one.unchanged for one in used)} unchanged"
        )


def _moment(timestamp: int) -> str:
    """Return the time of one of the cluster's timestamps."""
    return f"{datetime.fromtimestamp(unix_seconds(timestamp), UTC):%Y-%m-%d %H:%M:%S} UTC"


def _line(batch: FinishedBatch, outputs: Sequence[str], late: Sequence[str]) -> tuple[Cell, ...]:
    return (
        batch.name,
        f"{batch.ended:%Y-%m-%d %H:%M:%S}",
        batch.read,
        # An output that was added later has no number in older rows.
        *(batch.written.get(name, 0) for name in outputs),
        *(batch.late for _ in late),
        round(batch.seconds, 1),
    )


def _speed(batches: Sequence[FinishedBatch]) -> str:
    """Return how many rows were read per second: of the time at work, and of all time."""
    rows = sum(batch.read for batch in batches)
    work = sum(batch.seconds for batch in batches)
    all_time = (batches[-1].ended - batches[0].started).total_seconds()
    return (
        f"the last {counted(len(batches), 'batch')}: {counted(rows, 'row')} in {work:.1f} s of work"
        f"{_per_second(rows, work)}, {all_time:.1f} s with the pauses{_per_second(rows, all_time)}"
    )


def _per_second(rows: int, seconds: float) -> str:
    return f" ({rows / seconds:.0f} rows/s)" if seconds > 0 else ""


def process_line(found: JobStatus) -> str:
    """Return the status of the process that has raised the epoch."""
    if found.head is None:
        return "the job has not started yet"
    how = {
        ProcessState.RUNNING: "it is running",
        ProcessState.KILLED: "it was killed: its lock is free, and it has not said that it ended",
    }
    return f"epoch {found.head.epoch} of {found.head.owner}: {how.get(found.process, found.how)}"


def _state(found: JobStatus) -> Iterator[str]:
    """Yield how the last process ended, how many batches there were, the state, and what waits."""
    if found.head is None:
        yield process_line(found)
    else:
        yield f"{process_line(found)}; {counted(found.head.number, 'batch')} until now"
        yield f"{counted(found.epochs, 'restart')} in the last day"
    if found.connector:
        yield found.connector
    if found.holder and found.process != ProcessState.RUNNING:
        yield f"the lock is held by {found.holder}"
    if found.state is not None:
        rows = "not counted yet" if found.state.rows is None else counted(found.state.rows, "row")
        mark = spark_logs.named(found.state.watermark) if found.state.watermark else "none yet"
        size = f"{found.state.bytes / 1024**2:.1f} MiB in the checkpoint"
        yield f"state: {rows}, {size}; watermark: {mark}"
        if (store := found.state.store) is not None:
            mib = [f"{size / 1024**2:.1f} MiB" for size in (store.memory_bytes, store.file_bytes)]
            yield (
                f"state store: {mib[0]} of memory, {mib[1]} on disk, in all executors; the last "
                f"batch spent {store.milliseconds / 1000:.1f} s of its tasks in it"
            )
    elif found.head is not None and (since := found.head.state_since):
        places = (f"{path}:{p}={row}" for path, by in since.items() for p, row in by.items())
        yield f"totals in tables: of the rows from {' '.join(places)} on"
    if found.static is not None:
        waiting = counted(found.static.waiting, "table")
        yield f"{waiting} of static outputs waiting for publication"
        for path in found.static.forgotten:
            yield f"{path}: {staged_tables.FORGOTTEN}"
    for archive in found.archives:
        yield archive.text
    yield from (one.text for one in found.sums if one.share > TOTAL_SHARE)


def _operation(context: JobContext, seen: JobStatus) -> Iterator[str]:
    """Yield what the cluster says of the job's operation; nothing for a job that has none."""
    client, found, runs = context.client, seen.operation, seen.runs
    if found is None:
        return
    failed = sum(run.state == "failed" for run in runs)
    note = found.note
    began, ended = map(operation.moment, (found.started, found.ended))
    when = f"at {ended}" if found.is_final else f"since {began}"
    yield ""
    yield (
        f"operation {found.id}: {found.state} {when}; {counted(len(runs), 'attempt')}, "
        f"{failed} failed"
    )
    if found.error:
        yield f"its end: {found.error}"
    yield (
        f"alias {context.settings.alias}, version {note.get('version') or '?'}, "
        f"commit {note.get('commit') or '?'}"
    )
    if found.executors:
        yield f"executors: operation {found.executors}"
    if address := operation.address(client, found.id):
        yield f"web interface: {address}"
    if not found.is_final and (own := found.description.get("Web UI")):
        yield f"Spark's own: {own}"


def _versions(found: JobStatus) -> Iterator[str]:
    """Yield a table of the versions that were submitted, the newest first."""
    if not found.versions:
        return
    header = ("started (UTC)", "ended (UTC)", "commit", "configuration", "by", "how")
    yield ""
    yield table(header, [
        (*(_minute(one.started), _minute(one.ended)), one.commit, one.identity[1], one.user, how)
        for one in found.versions
        for how in [_how(one)]
    ])  # fmt: skip


def _how(one: DeployedVersion) -> str:
    """Return the status of a version."""
    if one.ended:
        return f"refused: {one.how}" if one.state == StartState.REFUSED else one.how
    return "runs" if one.state == StartState.WORKS else "started, no batch is known"


def _minute(given: str) -> str:
    return given[:19].replace("T", " ")
