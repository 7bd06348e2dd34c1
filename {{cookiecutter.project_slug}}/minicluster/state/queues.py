"""Queues: reading ordered tables by partition, consumers, their registrations, trimming.

A queue is any ordered dynamic table and a partition is a tablet. A consumer is a sorted table that
holds, per queue and partition, the index of the next row to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yt import yson

from ..errors import YtError, access_denied, generic
from . import items, rows, wire
from .ordered import within_weight
from .queue_agent import QueueAgent
from .schema import sorted_schema
from .tablet_tx import Transaction
from .tablets import Table, require_readable, tablet_at

if TYPE_CHECKING:
    from .cluster import Cluster
    from .nodes import Node

OFFSET_CONFLICT = 3100


# What `create queue_consumer` makes (documentation, "queues").
CONSUMER_SCHEMA = sorted_schema(
    ("queue_cluster", "string", True),
    ("queue_path", "string", True),
    ("partition_index", "uint64", True),
    ("offset", "uint64", True),
    ("meta", "any", False),
    keys=3,
)
DEFAULT_MAX_ROWS = 1000
DEFAULT_MAX_WEIGHT = 16 << 20

_SYSTEM = [
    wire.RowsetColumn(rows.TABLET_INDEX, wire.INT64),
    wire.RowsetColumn(rows.ROW_INDEX, wire.INT64),
]


@dataclass
class Registration:
    """That a consumer reads a queue; `vital` ones hold back its trimming."""

    queue: str
    consumer: str
    vital: bool
    partitions: list[int] | None = None


@dataclass
class QueueRowset(wire.Rowset):
    """Rows of one partition that follow each other.

    `start_offset` is the index of the first row, which a trimmed queue makes a later one than was
    asked for; with no rows it is the offset that was asked for (api/native,
    client_dynamic_tables_impl.cpp).
    """

    start_offset: int


class Queues:
    """`cluster.queues`. Queues and consumers are named by path; symlinks are followed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.agent = QueueAgent(cluster)
        self._registrations: dict[tuple[str, str], Registration] = {}

    # Reading

    def pull(
        self,
        queue: str,
        partition: int,
        offset: int,
        max_rows: int | None = None,
        max_data_weight: int | None = None,
    ) -> QueueRowset:
        """Rows from `offset` on, or from the first row that is not trimmed.

        Fewer than `max_rows` may come. Beside the table's columns each row carries
        `$tablet_index` and `$row_index`, int64.
        """
        node, table = self._cluster.tables.ordered(queue)
        if offset < 0:
            raise generic(f"Invalid row index {offset}: it must not be negative")
        tablet = tablet_at(table, partition, node.path)
        require_readable(tablet, node.path)
        # A trimmed offset is answered with the first rows there are (documentation, "queues").
        first, found = tablet.data.slice(offset, DEFAULT_MAX_ROWS if max_rows is None else max_rows)
        weight = DEFAULT_MAX_WEIGHT if max_data_weight is None else max_data_weight
        if found and weight < tablet.data.data_weight:
            found = found[: within_weight(found, weight)]
        width = len(table.schema.columns)
        return QueueRowset(
            table.schema.rowset_columns() + _SYSTEM,
            numbered(found, width, partition, first),
            first if found else offset,
        )

    def pull_consumer(
        self,
        consumer: str,
        queue: str,
        partition: int,
        offset: int | None,
        max_rows: int | None = None,
        max_data_weight: int | None = None,
    ) -> QueueRowset:
        """As `pull`, for a registered consumer; from its own position when `offset` is None."""
        consumer_node, consumer_table = self.consumer(consumer)
        queue_node, _ = self._cluster.tables.node(queue)
        self._require_registration(queue_node, consumer_node)
        if offset is None:
            key = self._key(queue_node.path, partition)
            tablet = consumer_table.tablets[consumer_table.tablet_of(key)]
            require_readable(tablet, consumer_node.path)
            offset = _offset(consumer_table, consumer_table.data.get(key))
        return self.pull(queue, partition, offset, max_rows, max_data_weight)

    # Positions

    def advance(
        self,
        consumer: str,
        queue: str,
        partition: int,
        old_offset: int | None,
        new_offset: int,
        *,
        tx: Transaction | None = None,
    ) -> None:
        """Moves a consumer, in `tx` or in a transaction of its own.

        With `old_offset` the position must be that, as the transaction sees it.
        Raises: YtError 3100 if it is not, 1702 if the consumer is not mounted, 901 if the consumer
        is not registered.
        """
        node, table = self.consumer(consumer)
        queue_node, queue_table = self._cluster.tables.ordered(queue)
        # model: stricter than the native client, which looks for the queue and its registration
        # only on a pull (client/api/queue_transaction_mixin.cpp).
        self._require_registration(queue_node, node)
        if new_offset < 0:
            # client/api/queue_transaction_mixin.cpp
            raise generic(f"Queue consumer offset {new_offset} cannot be negative")
        tablet_at(queue_table, partition, queue_node.path)
        names, written = items.encode(
            table.schema,
            [
                {
                    "queue_cluster": self._cluster.name,
                    "queue_path": queue_node.path,
                    "partition_index": yson.YsonUint64(partition),
                    "offset": yson.YsonUint64(new_offset),
                }
            ],
        )
        with self._cluster.tablet_transactions.within(tx) as transaction:
            if old_offset is not None:
                key = self._key(queue_node.path, partition)
                require_readable(table.tablets[table.tablet_of(key)], node.path)
                current = _offset(table, table.data.get(key, transaction.start_timestamp))
                if current != old_offset:
                    raise _offset_conflict(node.path, partition, old_offset, current)
            self._cluster.tables.modify(
                node.path, [(rows.WRITE, written[0])], names, tx=transaction
            )

    def consumer(self, path: str) -> tuple[Node, Table]:
        """A consumer's node and table: any sorted table that has a consumer's columns."""
        node, table = self._cluster.tables.sorted(path)
        for column in CONSUMER_SCHEMA.columns:
            if column.name != "meta" and table.schema.find(column.name) is None:
                raise generic(f'Table {node.path} is not a queue consumer: no "{column.name}"')
        return node, table

    def offset(self, consumer: Table, queue_path: str, partition: int) -> int:
        """The next row that a consumer has to read; 0 when it has never moved."""
        return _offset(consumer, consumer.data.get(self._key(queue_path, partition)))

    def last_consumed(self, consumer: Table, queue_path: str, partition: int) -> int:
        """Timestamp of the consumer's last move; 0 when it has never moved."""
        return consumer.data.last_write(self._key(queue_path, partition))

    def _key(self, queue_path: str, partition: int) -> rows.Key:
        return (
            wire.STRING,
            self._cluster.name.encode(),
            wire.STRING,
            queue_path.encode(),
            wire.UINT64,
            partition,
        )

    # Registrations

    def register(
        self, queue: str, consumer: str, vital: bool, partitions: list[int] | None = None
    ) -> None:
        """Registers a consumer with a queue; a second time, it replaces what was there."""
        queue_node, _ = self._cluster.tables.ordered(queue)
        consumer_node, _ = self.consumer(consumer)
        self._registrations[queue_node.path, consumer_node.path] = Registration(
            queue_node.path, consumer_node.path, bool(vital), partitions
        )
        self.agent.wake()

    def unregister(self, queue: str, consumer: str) -> None:
        """Takes a registration away; the objects may be gone, or never have been registered."""
        pair = self.canonical(queue), self.canonical(consumer)
        self._registrations.pop(pair, None)
        self.agent.wake()

    def registrations(
        self, queue: str | None = None, consumer: str | None = None
    ) -> list[Registration]:
        """Registrations of a queue, of a consumer, of the pair, or all."""
        queue_path = None if queue is None else self.canonical(queue)
        consumer_path = None if consumer is None else self.canonical(consumer)
        return [
            registration
            for (of_queue, of_consumer), registration in sorted(self._registrations.items())
            if queue_path in (None, of_queue) and consumer_path in (None, of_consumer)
        ]

    def list_registrations(
        self, queue: str | None = None, consumer: str | None = None
    ) -> list[dict[str, Any]]:
        """As the command of that name answers: paths are strings with a `cluster` attribute."""
        return [
            {
                "queue_path": self._rich(registration.queue),
                "consumer_path": self._rich(registration.consumer),
                "vital": registration.vital,
                "partitions": registration.partitions,
            }
            for registration in self.registrations(queue, consumer)
        ]

    def canonical(self, path: str) -> str:
        """The path of the object itself, symlinks followed; as given when there is none."""
        try:
            return str(self._cluster.cypress.resolve(path).path)
        except YtError:
            return path

    def _rich(self, path: str) -> Any:
        return yson.to_yson_type(path, attributes={"cluster": self._cluster.name})

    def _require_registration(self, queue: Node, consumer: Node) -> None:
        if (queue.path, consumer.path) not in self._registrations:
            # Code and wording: client/queue_client/registration_manager.cpp.
            raise access_denied(
                f"Consumer {self._cluster.name}:{consumer.path} is not registered for queue "
                f"{self._cluster.name}:{queue.path}",
                raw_queue=queue.path,
                raw_consumer=consumer.path,
            )


def numbered(found: list[bytes], width: int, partition: int, first: int) -> list[bytes]:
    """Rows with their tablet and row index, under the column ids `width` and `width + 1`."""
    head = (
        wire.encode_value(width, wire.INT64, partition)
        + wire.encode_value(width + 1, wire.INT64, 0)[:8]
    )
    return [
        (row[0] + 256 * row[1] + 2).to_bytes(8, "little")
        + row[8:]
        + head
        + index.to_bytes(8, "little")
        for index, row in enumerate(found, first)
    ]


def _offset(consumer: Table, row: bytes | None) -> int:
    if row is None:
        return 0
    for column, _, value in wire.values(row):
        if consumer.schema.columns[column].name == "offset" and isinstance(value, int):
            return value
    return 0


def _offset_conflict(consumer: str, partition: int, expected: int, current: int) -> YtError:
    """Code and wording: client/queue_client/consumer_client.cpp."""
    return YtError(
        OFFSET_CONFLICT,
        f"Offset conflict at partition {partition} of consumer {consumer}: "
        f"expected offset {expected}, found offset {current}",
        {
            "partition": partition,
            "consumer": consumer,
            "expected_offset": expected,
            "current_offset": current,
        },
    )
