"""The tables of `status`: queues, consumer and ledger, the lag, the last batches, the operation."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from . import ledger, operation
from .cluster import cluster_name
from .job import Connection
from .recovery import aside, snapshot
from .recovery.snapshot import Snapshot
from .recovery.stopping import how_it_ended, of_job
from .table import Cell, counted, table

#: Batches that are shown, and whose rows per second are counted: the last ones.
SHOWN = 10
#: What the service columns of a table hold.
_MICROSECONDS = 1_000_000


def status(connection: Connection) -> str:
    """Return the tables of partitions and of batches, the lag, and how the last process ended."""
    found = snapshot.read(connection.client, connection.settings)
    return "\n".join(
        (
            *_queues(connection, found),
            *_batches(connection),
            *_state(connection, found),
            *_operation(connection),
        )
    )


def _queues(connection: Connection, found: Snapshot) -> Iterator[str]:
    """Yield a table of each partition's rows, both offsets, and the lag; then the whole lag.

    ``next`` is the row the next batch starts with, by the ledger; the consumer may be behind.
    """
    head = found.begun
    rows: list[tuple[Cell, ...]] = []
    lag = 0
    for queue in found.queues:
        for partition, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True)):
            consumed = queue.consumed.get(partition, 0)
            after = head.ends.get(queue.path, {}).get(partition, 0) if head else consumed
            behind = max(0, upper - after)
            rows.append((queue.path, partition, lower, upper, consumed, after, behind))
            lag += behind
    yield table(("queue", "partition", "first", "end", "consumer", "next", "lag"), rows)
    yield ""
    where = f"cluster {cluster_name(connection.client)} at {connection.settings.proxy}"
    yield f"{where}; lag: {counted(lag, 'row')}"
    for path in sorted(head.removed) if head else ():
        yield f"{path} is not read any more; back, it continues where it was"


def _batches(connection: Connection) -> Iterator[str]:
    """Yield a table of the last batches, the newest last, and how fast they were."""
    query = ledger.newest_query(connection.settings.ledger, SHOWN)
    batches = [*connection.client.select_rows(query)][::-1]
    if not batches:
        return
    outputs = list(connection.job.outputs)
    late = ["late"] if connection.job.kind.is_stateful else []
    header = ("batch", "ended (UTC)", "rows read", *outputs, *late, "seconds")
    yield ""
    yield table(header, [_line(batch, outputs, late) for batch in batches])
    yield ""
    yield _speed(batches)


def _line(
    batch: Mapping[str, Any], outputs: Sequence[str], late: Sequence[str]
) -> tuple[Cell, ...]:
    ended = datetime.fromtimestamp(batch["ended"] / _MICROSECONDS, UTC)
    return (
        ledger.batch_name(int(batch["epoch"]), int(batch["batch"])),
        f"{ended:%Y-%m-%d %H:%M:%S}",
        int(batch["rows_read"]),
        # An output that was added later has no number in older rows.
        *(int(batch["rows_written"].get(name, 0)) for name in outputs),
        *(ledger.late_of(batch) for _ in late),
        round(_seconds(batch["started"], batch["ended"]), 1),
    )


def _speed(batches: Sequence[Mapping[str, Any]]) -> str:
    """Return how many rows were read per second: of the time at work, and of all time."""
    rows = sum(int(batch["rows_read"]) for batch in batches)
    work = sum(_seconds(batch["started"], batch["ended"]) for batch in batches)
    all_time = _seconds(batches[0]["started"], batches[-1]["ended"])
    return (
        f"the last {counted(len(batches), 'batch')}: {counted(rows, 'row')} in {work:.1f} s of work"
        f"{_per_second(rows, work)}, {all_time:.1f} s with the pauses{_per_second(rows, all_time)}"
    )


def _per_second(rows: int, seconds: float) -> str:
    return f" ({rows / seconds:.0f} rows/s)" if seconds > 0 else ""


def _seconds(start: int, end: int) -> float:
    return (int(end) - int(start)) / _MICROSECONDS


def _state(connection: Connection, found: Snapshot) -> Iterator[str]:
    """Yield how the last process ended, how many batches there were, and what waits."""
    head = found.begun
    if head is None:
        yield "the job has not started yet"
    else:
        ended = how_it_ended(connection, head.owner) or "it has not said that it ended"
        batches = counted(head.number, "batch")
        yield f"epoch {head.epoch} of {head.owner}: {ended}; {batches} until now"
    if connection.job.static:
        client, settings = connection.client, connection.settings
        written = aside.written(client, settings)
        named = aside.named(client, settings, written)
        yield f"{counted(len(named), 'table')} of static outputs waiting for publication"
        if head is not None:
            others = {table for table in written if table.epoch < head.epoch} - named.keys()
            for table in sorted(aside.forgotten(client, settings, others, head.number)):
                yield f"{table.path_in(settings)}: {aside.FORGOTTEN}"


def _operation(connection: Connection) -> Iterator[str]:
    """Yield what the cluster says of the job's operation; nothing for a job that has none."""
    client, found = connection.client, of_job(connection)
    if found is None:
        return
    runs = operation.runs(client, found.id)
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
        f"alias {connection.settings.alias}, version {note.get('version') or '?'}, "
        f"commit {note.get('commit') or '?'}"
    )
    if found.executors:
        yield f"executors: operation {found.executors}"
    if address := operation.address(client, found.id):
        yield f"web interface: {address}"
    if not found.is_final and (own := found.description.get("Web UI")):
        yield f"Spark's own: {own}"
