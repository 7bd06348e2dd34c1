"""The table of `status`: where queues, consumer and ledger are, and the lag."""

from .cluster import cluster_name
from .job import Connection
from .recovery import aside, snapshot
from .recovery.stopping import how_it_ended
from .table import counted, table


def status(connection: Connection) -> str:
    """Return a table of each partition's rows, both offsets, and the lag.

    ``next`` is the row the next batch starts with, by the ledger; the consumer may be behind.
    """
    found = snapshot.read(connection.client, connection.settings)
    head = found.begun
    rows: list[tuple[str | int, ...]] = []
    lag = 0
    for queue in found.queues:
        for partition, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True)):
            consumed = queue.consumed.get(partition, 0)
            after = head.ends.get(queue.path, {}).get(partition, 0) if head else consumed
            behind = max(0, upper - after)
            rows.append((queue.path, partition, lower, upper, consumed, after, behind))
            lag += behind
    last = "the job has not started yet"
    if head is not None:
        ended = how_it_ended(connection, head.owner) or "it has not said that it ended"
        batches = counted(head.number, "batch")
        last = f"epoch {head.epoch} of {head.owner}: {ended}; {batches} until now"
    if connection.job.static:
        written = aside.written(connection.client, connection.settings)
        count = len(aside.named(connection.client, connection.settings, written))
        last += f"\n{counted(count, 'table')} of static outputs waiting for publication"
    return (
        f"{table(('queue', 'partition', 'first', 'end', 'consumer', 'next', 'lag'), rows)}\n\n"
        f"cluster {cluster_name(connection.client)} at {connection.settings.proxy}; "
        f"lag: {counted(lag, 'row')}\n{last}"
    )
