"""What recovery may change, and how it is carried out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .checkpoint import Planned
from .positions import Positions, Queue
from .settings import Settings


@dataclass
class Decision:
    """The changes before a start, and what to tell; without changes the job starts as it stands."""

    #: (queue, partition) -> the row the consumer is to read next.
    advance: dict[tuple[str, int], int] = field(default_factory=dict)
    #: Batch whose entry in the commit log is taken back: it runs again.
    uncommit: int | None = None
    #: Batch that gets its missing entry in the commit log: it does not run again.
    commit: Planned | None = None
    #: Batch whose entry in the offset log is taken back: it is planned anew.
    unplan: int | None = None
    #: Entry of the offset log, and the ends it is to have instead.
    rebase: tuple[Planned, tuple[Mapping[int, int], ...]] | None = None
    notes: list[str] = field(default_factory=list)


def apply(client: Any, settings: Settings, positions: Positions, decision: Decision) -> None:
    """Carry the decision out: the logs first, the consumer last.

    A crash in between leaves the consumer behind the checkpoint, which loses nothing: the next
    start decides again or refuses.
    """
    checkpoint, files = settings.checkpoint, dict[str, str]()
    if decision.uncommit is not None:
        client.remove(f"{checkpoint}/commits/{decision.uncommit}")
    if decision.commit is not None:
        files[f"{checkpoint}/commits/{decision.commit.batch}"] = decision.commit.commit_text()
    if decision.unplan is not None:
        client.remove(f"{checkpoint}/offsets/{decision.unplan}")
    if decision.rebase is not None:
        planned, ends = decision.rebase
        files[f"{checkpoint}/offsets/{planned.batch}"] = planned.moved(ends)
    for path, text in files.items():
        client.create("map_node", path.rpartition("/")[0], recursive=True, ignore_existing=True)
        # In one master transaction: another reader sees the whole file or none.
        client.write_file(path, text.encode(), force_create=True)
    advance(client, settings, positions.queues, decision.advance)


def advance(
    client: Any, settings: Settings, queues: Sequence[Queue], rows: Mapping[tuple[str, int], int]
) -> list[str]:
    """Move the consumer to ``rows`` by (queue, partition); returns what was moved, a line each."""
    consumed = {queue.path: queue.consumed for queue in queues}
    done = []
    for (queue, partition), row in rows.items():
        old = consumed[queue].get(partition)
        if (old or 0) != row:
            # With old_offset the move fails if somebody else has moved the consumer meanwhile.
            client.advance_queue_consumer(settings.consumer, queue, partition, old, row)
            done.append(f"{queue}, partition {partition}: consumer from row {old or 0} to {row}")
    return done
