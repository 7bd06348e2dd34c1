"""The changes that recovery may make before a start, and how they are carried out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..cluster import Client
from ..config import Settings
from ..positions import Planned, Queue, Rows


@dataclass(frozen=True)
class Decision:
    """The changes, and what to tell; without changes the job starts as it is."""

    #: (queue, partition) -> the row the consumer is to read next.
    advance: Mapping[tuple[str, int], int] = field(default_factory=dict)
    #: A batch whose entry is removed from the commit log: it runs again.
    uncommit: int | None = None
    #: A batch whose missing entry is added to the commit log: it does not run again.
    commit: Planned | None = None
    #: A batch whose entry is removed from the offset log: Spark plans it anew.
    unplan: int | None = None
    #: An entry of the offset log, and the ends it is to have instead.
    rebase: tuple[Planned, Rows] | None = None
    notes: tuple[str, ...] = ()
    #: The first row that the next batch reads, by queue and partition.
    starts: Rows = field(default=(), compare=False)


def apply(client: Client, settings: Settings, queues: Sequence[Queue], decision: Decision) -> None:
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
        # One master transaction: another reader sees the whole file or none.
        client.write_file(path, text.encode(), force_create=True)
    advance(client, settings, queues, decision.advance)


def advance(
    client: Client, settings: Settings, queues: Sequence[Queue], rows: Mapping[tuple[str, int], int]
) -> list[str]:
    """Move the consumer to ``rows`` by (queue, partition); return a line for each move."""
    consumed = {queue.path: queue.consumed for queue in queues}
    done = []
    for (queue, partition), row in rows.items():
        old = consumed[queue].get(partition, 0)
        if old != row:
            # With old_offset the move fails if the consumer has been moved meanwhile.
            client.advance_queue_consumer(settings.consumer, queue, partition, old, row)
            done.append(f"{queue}, partition {partition}: consumer from row {old} to {row}")
    return done
