"""A job that ran before there was a ledger: its logs and its consumer are judged once.

Then the markers on checkpoint and consumer said whose they are, and one checkpoint served every
start.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import JobError
from ..job import Connection
from ..ledger import Head
from ..positions import Planned, Rows
from . import checkpoint
from .ownership import marker_of
from .snapshot import MARKER, Snapshot


def head_of(connection: Connection, found: Snapshot) -> Head | None:
    """Return the head that such a job would have; None for a job that has never run.

    Raises JobError when logs and consumer say different things.
    """
    marker = found.consumer_marker
    if marker is None or "ledger" in marker or found.begun is not None:
        return None
    settings = connection.settings
    try:
        ids = {str(queue["path"]): str(queue["id"]) for queue in marker["queues"]}
        former = {key: marker[key] for key in ("job", "guarantee", "processing")}
        outputs = {"outputs": {next(iter(settings.outputs)): str(marker["output"])}}
        begun = _begun(connection, len(found.queues))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JobError(
            f"the attribute {MARKER} of {settings.consumer} or {settings.checkpoint} is not as a "
            f"job writes it: {error!r}",
            "restore it, or use `rewind`",
        ) from error
    if list(ids) != [queue.path for queue in found.queues]:
        raise JobError(
            f"the job has read the queues {', '.join(ids)}, the configuration names "
            f"{', '.join(settings.queues)}",
            "put them back for one start, which makes the ledger; then change them",
        )
    batch, rows = _position(connection, found, str(former["guarantee"]), begun)
    ends = {queue.path: row for queue, row in zip(found.queues, rows, strict=True)}
    mine = marker_of(connection)
    head = found.head or Head()
    marker = {**mine, **former, **outputs}
    return Head(head.epoch, head.owner, 0, batch, head.number, ends, ids, marker)


def _begun(connection: Connection, queues: int) -> Rows:
    """Return where the consumer was when the checkpoint was begun, by its marker."""
    path = connection.settings.checkpoint
    marker: Mapping[str, Any] = connection.client.get_attribute(path, MARKER, None) or {}
    noted = [{int(p): int(row) for p, row in rows.items()} for rows in marker.get("begun", ())]
    return noted if len(noted) == queues else [{}] * queues


def _position(
    connection: Connection, found: Snapshot, guarantee: str, begun: Rows
) -> tuple[int, Rows]:
    """Return the last batch that happened and where it ended."""
    client, path = connection.client, connection.settings.checkpoint
    numbers = checkpoint.numbers(client, f"{path}/offsets")[-2:]
    entries = [checkpoint.planned(client, path, number) for number in numbers]
    entries = [replace(e, ends=checkpoint.by_queue(e.ends, len(found.queues))) for e in entries]
    committed = set(checkpoint.numbers(client, f"{path}/commits"))
    consumed = [queue.consumed for queue in found.queues]
    if numbers[:1] in ([], [0]):
        entries.insert(0, Planned(-1, tuple(begun), {}))
    is_stateful = connection.job.kind.is_stateful
    if guarantee == "transactional":
        # The consumer moved in the transaction of the batch; a batch without rows did not move it.
        if entries[-1].batch not in committed and _is_empty(entries):
            entries.pop()
        done = [entry for entry in entries if _ends_at(entry, consumed)]
    else:
        # The commit log is the truth; the consumer follows one batch behind.
        done = [entry for entry in entries if entry.batch in committed]
        if not done and _ends_at(entries[0], consumed):
            done = entries[:1]
    if done:
        return done[-1].batch, consumed if done[-1].batch < 0 else done[-1].ends
    if numbers and (is_stateful or (guarantee == "transactional" and numbers != [0])):
        raise JobError(
            f"the consumer {connection.settings.consumer} is at no end of the last batches of "
            f"{path}: one of them was changed by hand",
            "undo that, or use `rewind`, which starts with an empty checkpoint",
        )
    if is_stateful:
        raise JobError(
            f"the checkpoint {path} has no batch, though the consumer has moved: it is gone, and "
            "the state with it",
            "restore it, or use `rewind`, which starts with an empty state",
        )
    return -1, consumed


def _is_empty(entries: list[Planned]) -> bool:
    """Return whether the last batch has no rows."""
    return len(entries) > 1 and all(
        _moved(was) == _moved(now) for was, now in zip(*(e.ends for e in entries[-2:]), strict=True)
    )


def _ends_at(entry: Planned, rows: Rows) -> bool:
    return all(_moved(ends) == _moved(row) for ends, row in zip(entry.ends, rows, strict=True))


def _moved(rows: Mapping[int, int]) -> dict[int, int]:
    """Return the rows without partitions at row 0, which may be absent."""
    return {partition: row for partition, row in rows.items() if row}
