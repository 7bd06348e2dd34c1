"""The table of `status`: where queues, consumer and ledger are, and the lag."""

from .cluster import cluster_name
from .job import Connection
from .recovery import snapshot
from .table import table


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
    last = (
        f"epoch {head.epoch} of {head.owner}; {head.number} batches in the ledger"
        if head is not None
        else "the job has not started yet"
    )
    return (
        f"{table(('queue', 'partition', 'first', 'end', 'consumer', 'next', 'lag'), rows)}\n\n"
        f"cluster {cluster_name(connection.client)} at {connection.settings.proxy}; lag: {lag} "
        f"rows\n{last}"
    )
