"""Before a start: keeps transactions of an earlier driver from committing later.

A commit whose connection broke may be applied by the cluster long after its driver is gone, and a
driver that was cut off may still be at it. Every batch moves the consumer in its transaction. So
write each of the consumer's rows once more where it stands: from then on an older transaction that
wrote one of them meets "Row lock conflict due to concurrent write". The server writes the row even
when the offset is the same (YTsaurus, consumer_client.cpp).
"""

from yt.common import YtError

from ..cluster import cluster_name, first_line
from ..errors import RestartableError
from ..job import Connection
from ..positions import Queue, Snapshot
from . import snapshot

_ATTEMPTS = 5


def raise_fence(connection: Connection, found: Snapshot) -> None:
    """Write the consumer's rows where they stand; nothing for a job that has never started.

    Raises RestartableError when they do not stop moving.
    """
    if found.consumer_marker is None:
        return
    for queue in found.queues:
        for partition in range(len(queue.upper)):
            _write_again(connection, queue, partition)


def _write_again(connection: Connection, queue: Queue, partition: int) -> None:
    client, settings = connection.client, connection.settings
    row = queue.consumed.get(partition, 0)
    for _ in range(_ATTEMPTS):
        try:
            # With old_offset: a commit that was applied since the reading must count.
            client.advance_queue_consumer(settings.consumer, queue.path, partition, row, row)
            return
        except YtError as error:
            said = first_line(error)
            consumed = snapshot.consumed(
                client, cluster_name(client), settings.consumer, queue.path
            )
            row = consumed.get(partition, 0)
    raise RestartableError(
        f"{queue.path}, partition {partition}: the consumer does not stop moving: {said}"
    )
