"""Reads all positions: queues, consumer, and the head of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import yt.type_info as ti

from ..cluster.client import Client, cluster_name
from ..schema.columns import Column
from ..settings.job_settings import Settings
from . import ledger_rows
from .ledger_rows import Head
from .offsets import Queue
from .queue_layout import is_grown, layout_of, telling_rows
from .row_timestamps import row_timestamps

if TYPE_CHECKING:  # the ledger is read without Spark as well
    from ..connector.tablet_transactions import Transaction

MARKER = "ytstream_job"
"""Attribute of consumer, checkpoint and outputs: whose they are, and that job's ledger."""

LOST_HEAD = (
    "use `rewind rows`, which writes a new head where the consumer is: at most one micro-batch "
    "behind, with an empty state. Restore the table only if you have it as it was after the last "
    "batch: by an older copy the job writes the rows of all batches since then once more"
)
"""What to do about a ledger without a head, where the consumer knows where the job was."""

_CONSUMER = (
    Column("queue_cluster", ti.String, required=True, key=True),
    Column("queue_path", ti.String, required=True, key=True),
    Column("partition_index", ti.Uint64, required=True, key=True),
)
"""The key of a consumer's row (YTsaurus, client/queue_client/consumer_client.cpp)."""

_LOOKS = 10
"""Attempts at a consistent read; ten rarely all straddle a commit."""

Select = Callable[[str], Iterable[Mapping[str, Any]]]
"""A query in YTsaurus' language -> rows: of a client, or of a transaction as of its start."""


@dataclass(frozen=True)
class Snapshot:
    """Head and queues are of one moment, as far as batches of another process move them."""

    queues: tuple[Queue, ...]
    head: Head | None
    """None before the first start of the job."""
    consumer_marker: Mapping[str, Any] | None
    checkpoint_marker: Mapping[str, Any] | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """Path of an output -> its mark; None without one."""

    @property
    def begun(self) -> Head | None:
        """The head, once a start was committed."""
        return self.head if self.head is not None and self.head.folder is not None else None

    @property
    def renumbered(self) -> frozenset[str]:
        """The queues whose rows have other numbers than before: recreated or resharded."""
        if (head := self.begun) is None:
            return frozenset()
        return frozenset(
            queue.path
            for queue in self.queues
            if head.ids.get(queue.path, queue.id) != queue.id or is_moved(head, queue)
        )


def is_moved(head: Head, queue: Queue) -> bool:
    """Return whether a reshard may have given the queue's rows other numbers than the head's.

    A ledger of 1.0.0 does not know a layout: then the present one is adopted.
    """
    known, now = head.layouts.get(queue.path), queue.layout
    if known is None or now is None or known == now:
        return False
    return not is_grown(known, now, head.ends.get(queue.path, {}), queue.upper, queue.newer)


def is_reused(head: Head, queue: Queue) -> bool:
    """Return whether a tablet may count from 0 under the number of one whose rows were read."""
    if queue.layout is None:
        return False
    count = queue.layout.tablets
    if any(partition < count for partition in head.retired.get(queue.path, {})):
        return True
    return is_moved(head, queue) and count >= head.layouts[queue.path].tablets


def read(client: Client, settings: Settings, *, repair: bool = False) -> Snapshot:
    """Read all positions. Raises JobError for a damaged head; with ``repair`` it is a new one.

    A batch that commits between two requests moves the consumer on from the head. So the head is
    read before and after, and everything again if it has changed.
    """
    path, select, cluster = settings.ledger, client.select_rows, cluster_name(client)
    found = read_head(path, select, repair=repair)
    for _ in range(_LOOKS):
        head, where = found, queues(client, settings, cluster, found)
        found = read_head(path, select, repair=repair)
        if found == head:
            break
    return Snapshot(
        where,
        head,
        client.get_attribute(settings.consumer, MARKER, None),
        client.get_attribute(settings.checkpoint, MARKER, None),
        {path: client.get_attribute(path, MARKER, None) for path in settings.outputs.values()},
    )


def owner_of(head: Head | None) -> str | None:
    """Return which process has raised the epoch last; None before the first."""
    return head.owner if head is not None else None


def read_head(path: str, select: Select, *, repair: bool = False) -> Head | None:
    """Return the head row. Raises JobError for one that is not ours; with ``repair`` a new one."""
    return ledger_rows.head_of(path, iter(select(ledger_rows.head_query(path))), repair=repair)


def queues(
    client: Client, settings: Settings, cluster: str, head: Head | None = None
) -> tuple[Queue, ...]:
    """Return each queue's bounds, and where the consumer is. Raises YtError for one not mounted."""
    found = consumed(client.select_rows, cluster, settings.consumer)
    return tuple(queue(client, path, found.get(path, {}), head) for path in settings.queues)


def consumed(select: Select, cluster: str, consumer: str) -> dict[str, dict[int, int]]:
    """Return the consumer's offsets: queue -> partition -> next row."""
    rows = select(
        f'queue_path, partition_index, [offset] from [{consumer}] where queue_cluster = "{cluster}"'
    )
    found: dict[str, dict[int, int]] = {}
    for row in rows:
        found.setdefault(str(row["queue_path"]), {})[int(row["partition_index"])] = int(
            row["offset"]
        )
    return found


def forget_removed(
    transaction: Transaction, consumer: str, client: Client, found: Iterable[Queue]
) -> None:
    """Remove the consumer's offsets in partitions that a queue does not have any more.

    The cluster moves none of them ("Invalid tablet index"), and a partition that comes later with
    that number begins at row 0.
    """
    removed = [
        {"queue_cluster": cluster_name(client), "queue_path": queue.path, "partition_index": number}
        for queue in found
        for number in queue.consumed
        if number >= len(queue.upper)
    ]
    if removed:
        transaction.modify(consumer, _CONSUMER, [], removed)


def queue(client: Client, path: str, offsets: Mapping[int, int], head: Head | None = None) -> Queue:
    """Return a queue's bounds, with the offsets that a consumer has in it.

    With a ``head`` that knows other tablets, also which rows are newer than it.
    """
    found = client.get(f"{path}/@", attributes=["id", "tablets"])
    layout = layout_of(found["tablets"])
    # Fresher than @queue_partitions, which the Queue Agent refreshes every few seconds.
    infos = client.get_tablet_infos(path, list(range(layout.tablets)))["tablets"]
    made = Queue(
        path=path,
        id=str(found["id"]),
        lower=tuple(int(info["trimmed_row_count"]) for info in infos),
        upper=tuple(int(info["total_row_count"]) for info in infos),
        consumed=offsets,
        layout=layout,
    )
    return made if head is None else with_newer(client, made, head)


def with_newer(client: Client, queue: Queue, head: Head) -> Queue:
    """Return the queue with the rows, of those that tell about a reshard, newer than the head.

    None are known of a queue without the column `$timestamp`, which its owner has to declare, and
    of a head that an older version has written.
    """
    if head.timestamp is None or head.layouts.get(queue.path, queue.layout) == queue.layout:
        return queue
    rows = telling_rows(head.ends.get(queue.path, {}), queue.lower, queue.upper)
    found = row_timestamps(client, queue.path, rows) or {}
    newer = (row for row, timestamp in found.items() if (timestamp or 0) > head.timestamp)
    return replace(queue, newer=frozenset(newer))
