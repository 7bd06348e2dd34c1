"""The table of `status`: where queues, consumer and checkpoint are, and the lag."""

from .cluster import cluster_name
from .job import Connection
from .recovery import ownership, snapshot
from .table import table


def status(connection: Connection) -> str:
    """Return a table of each partition's rows, both offsets, and the lag.

    ``next`` is the row the next batch starts with, by the checkpoint; the consumer may be behind.
    """
    found = snapshot.read(connection.client, connection.settings)
    if (last := found.checkpoint.last) is not None and len(last.ends) != len(found.queues):
        ownership.verify_owner(connection, found)  # says which queues the checkpoint is for
    done, last = found.checkpoint.done, found.checkpoint.last
    rows: list[tuple[str | int, ...]] = []
    lag = 0
    for index, queue in enumerate(found.queues):
        for partition, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True)):
            consumed = queue.consumed.get(partition, 0)
            after = done.ends[index].get(partition, 0) if done is not None else consumed
            behind = max(0, upper - after)
            rows.append((queue.path, partition, lower, upper, consumed, after, behind))
            lag += behind
    state = "done" if found.checkpoint.is_last_committed else "running, or cut off"
    return (
        f"{table(('queue', 'partition', 'first', 'end', 'consumer', 'next', 'lag'), rows)}\n\n"
        f"cluster {cluster_name(connection.client)} at {connection.settings.proxy}; lag: {lag} "
        f"rows; last batch: {f'{last.batch} ({state})' if last is not None else 'none yet'}"
    )
