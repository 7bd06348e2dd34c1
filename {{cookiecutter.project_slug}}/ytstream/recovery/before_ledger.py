"""A job that ran before there was a ledger: its logs and its consumer are judged once.

Then the markers on checkpoint and consumer said whose they are, and one checkpoint served every
start.
"""

from ..errors import JobError
from ..job import Connection
from ..ledger import Head
from ..positions import Planned, Rows
from . import checkpoint
from .ownership import marker_of
from .snapshot import Snapshot


def head_of(connection: Connection, found: Snapshot) -> Head | None:
    """Return the head that such a job would have; None for a job that has never run.

    Raises JobError when logs and consumer say different things.
    """
    marker = found.consumer_marker
    if marker is None or "ledger" in marker or found.begun is not None:
        return None
    try:
        ids = {str(queue["path"]): str(queue["id"]) for queue in marker["queues"]}
        former = {key: marker[key] for key in ("job", "guarantee", "processing")}
    except (KeyError, TypeError) as error:
        raise JobError(
            f"the marker of the consumer {connection.settings.consumer} is not as a job writes it: "
            f"{marker}",
            "restore it, or use `rewind`",
        ) from error
    batch, rows = _position(connection, found, str(former["guarantee"]))
    ends = {queue.path: row for queue, row in zip(found.queues, rows, strict=True)}
    mine = marker_of(connection)
    head = found.head or Head()
    return Head(head.epoch, head.owner, 0, batch, head.number, ends, ids, {**mine, **former})


def _position(connection: Connection, found: Snapshot, guarantee: str) -> tuple[int, Rows]:
    """Return the last batch that happened and where it ended."""
    client, path = connection.client, connection.settings.checkpoint
    numbers = checkpoint.numbers(client, f"{path}/offsets")[-2:]
    entries = [checkpoint.planned(client, path, number) for number in numbers]
    consumed = [queue.consumed for queue in found.queues]
    if guarantee == "transactional":
        # The consumer moved in the transaction of the batch.
        for entry in reversed(entries):
            if _ends_at(entry, consumed):
                return entry.batch, consumed
        if entries and (connection.job.kind.is_stateful or len(entries) > 1):
            raise JobError(
                f"the consumer {connection.settings.consumer} is at no end of the last batches of "
                f"{path}: it was moved",
                "move it back, or use `rewind`, which starts with an empty checkpoint",
            )
        return -1, consumed
    # The commit log is the truth; the consumer follows one batch behind.
    committed = set(checkpoint.numbers(client, f"{path}/commits"))
    done = [entry for entry in entries if entry.batch in committed]
    return (done[-1].batch, done[-1].ends) if done else (-1, consumed)


def _ends_at(entry: Planned, rows: Rows) -> bool:
    return all(
        row.get(partition, 0) == end
        for ends, row in zip(entry.ends, rows, strict=True)
        for partition, end in ends.items()
    )
