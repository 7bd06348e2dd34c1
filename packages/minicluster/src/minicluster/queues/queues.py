"""Queues: reading ordered tables by partition, and moving their consumers.

A queue is any ordered dynamic table and a partition is a tablet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from yt import yson

from ..core.errors import YtError, around, generic
from ..rows import wire
from ..rows.from_wire import ROW_INDEX, TABLET_INDEX, WRITE, Key
from ..rows.from_yson import encode
from ..rows.rowset import Rowset, RowsetColumn
from ..rows.schema import DATA_WEIGHT, SYSTEM_COLUMNS, TIMESTAMP
from ..tables.commands import Tables
from ..tables.ordered import OrderedData, numbered
from ..tables.table import Table, require_readable, tablet_at
from ..tables.transactions import TabletTransactions, Transaction
from .agent import QueueAgent
from .consumers import Consumers, offset_in
from .registrations import Registration

OFFSET_CONFLICT = 3100


DEFAULT_MAX_ROWS = 1000
DEFAULT_MAX_WEIGHT = 16 << 20

_SYSTEM = [
    RowsetColumn(TABLET_INDEX, wire.INT64),
    RowsetColumn(ROW_INDEX, wire.INT64),
]


@dataclass
class QueueRowset(Rowset):
    """Rows of one partition that follow each other.

    `start_offset` is the index of the first row, which a trimmed queue makes a later one than was
    asked for; with no rows it is the offset that was asked for (api/native,
    client_dynamic_tables_impl.cpp).
    """

    start_offset: int


class Queues:
    """`cluster.queues`. Queues and consumers are named by path; symlinks are followed."""

    def __init__(
        self,
        cluster_name: str,
        tables: Tables,
        transactions: TabletTransactions,
        consumers: Consumers,
        agent: QueueAgent,
    ) -> None:
        self._cluster_name = cluster_name
        self._tables = tables
        self._transactions = transactions
        self._consumers = consumers
        self.agent = agent

    # Reading

    def pull(
        self,
        queue: str,
        partition: int,
        offset: int,
        max_rows: int | None = None,
        max_data_weight: int | None = None,
    ) -> QueueRowset:
        """Return rows from `offset` on, or from the first row that is not trimmed.

        Fewer than `max_rows` may come. Beside the table's columns each row carries
        `$tablet_index` and `$row_index`, int64.
        """
        node, table = self._tables.ordered(queue)
        if offset < 0:
            raise generic(f"Invalid row index {offset}: it must not be negative")
        tablet = tablet_at(table, partition, node.path)
        require_readable(tablet, node.path)
        # A trimmed offset is answered with the first rows there are (documentation, "queues").
        first, found = tablet.data.spans(
            offset,
            DEFAULT_MAX_ROWS if max_rows is None else max_rows,
            DEFAULT_MAX_WEIGHT if max_data_weight is None else max_data_weight,
        )
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
        """Pull rows for a registered consumer; from its own position when `offset` is None."""
        consumer_node, consumer_table = self._consumers.consumer(consumer)
        queue_node, _ = self._tables.node(queue)
        self._consumers.require(queue_node, consumer_node)
        if offset is None:
            key = self._consumers.key(queue_node.path, partition)
            tablet = consumer_table.tablets[consumer_table.tablet_of(key)]
            require_readable(tablet, consumer_node.path)
            offset = offset_in(consumer_table, consumer_table.data.get(key))
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
        client_side: bool = False,
    ) -> None:
        """Move a consumer, in `tx` or in a transaction of its own; it need not be registered.

        With `old_offset` the position must be that, as the transaction sees it. A server also
        writes where in the queue the position is (ytlib/api/native/transaction.cpp,
        AdvanceQueueConsumer). A client does not, and the queue need not exist then
        (client/api/queue_transaction_mixin.cpp). Raises YtError OFFSET_CONFLICT for another
        position, TABLET_NOT_MOUNTED if the consumer is not mounted.
        """
        if new_offset < 0:
            raise generic(f"Queue consumer offset {new_offset} cannot be negative")
        if partition < 0:
            raise generic(f"Partition index {partition} cannot be negative")
        queue_path = self._consumers.canonical(queue)
        meta = None if client_side else self._meta(queue, partition, new_offset)
        node, table = self._consumers.consumer(consumer)
        position = {
            "queue_cluster": self._cluster_name,
            "queue_path": queue_path,
            "partition_index": yson.YsonUint64(partition),
            "offset": yson.YsonUint64(new_offset),
            "meta": meta,
        }
        if table.schema.find("meta") is None:
            del position["meta"]
        names, written = encode(table.schema, [position])
        with self._transactions.within(tx) as transaction:
            if old_offset is not None:
                key = self._consumers.key(queue_path, partition)
                require_readable(table.tablets[table.tablet_of(key)], node.path)
                _require_offset(
                    consumer, partition, old_offset, table, key, transaction.start_timestamp
                )
            self._tables.modify(consumer, [(WRITE, written[0])], names, tx=transaction)

    def _meta(self, queue: str, partition: int, offset: int) -> dict[str, Any] | None:
        """Return what a server notes of a position: the time of the next row, and the weight of all
        rows before it (client/queue_client/consumer_client.cpp, GetConsumerMeta)."""
        try:
            node, table = self._tables.dynamic(queue)
        except YtError as error:
            raise around("Failed to resolve queue path", error) from None
        if table.sorted or partition >= len(table.tablets):
            return None
        tablet = table.tablets[partition]
        require_readable(tablet, node.path)
        at, before = (_service_values(table, tablet.data, index) for index in (offset, offset - 1))
        if at is None and before is None:
            return None
        found = {
            "offset_timestamp": (at or {}).get(TIMESTAMP),
            "cumulative_data_weight": (before or {}).get(DATA_WEIGHT),
        }
        return {name: value for name, value in found.items() if value is not None}

    # Registrations

    def register(
        self, queue: str, consumer: str, vital: bool, partitions: list[int] | None = None
    ) -> None:
        """Register a consumer with a queue; a second time, replace the registration."""
        self._consumers.register(queue, consumer, vital, partitions)
        self.agent.wake()

    def unregister(self, queue: str, consumer: str) -> None:
        """Remove a registration, if there is one; queue and consumer may be gone."""
        self._consumers.unregister(queue, consumer)
        self.agent.wake()

    def registrations(
        self, queue: str | None = None, consumer: str | None = None
    ) -> list[Registration]:
        """Return the registrations of a queue, of a consumer, of the pair, or all."""
        return self._consumers.registrations(queue, consumer)

    def list_registrations(
        self, queue: str | None = None, consumer: str | None = None
    ) -> list[dict[str, Any]]:
        """Return registrations as the command does: a path is a string with a `cluster`."""
        return self._consumers.list_registrations(queue, consumer)


def _service_values(table: Table, data: OrderedData, index: int) -> dict[str, Any] | None:
    """Return the columns that the server fills in of a row; None if there is no such row."""
    if not data.trimmed <= index < data.total:
        return None
    (row,) = data.rows[index - data.trimmed : index - data.trimmed + 1]
    values = wire.to_dict(row, [column.name for column in table.schema.columns])
    return {name: values[name] for name in SYSTEM_COLUMNS if name in values}


def _require_offset(
    consumer: str, partition: int, expected: int, table: Table, key: Key, timestamp: int
) -> None:
    """Raise the error of client/queue_client/consumer_client.cpp for another position."""
    current = offset_in(table, table.data.get(key, timestamp))
    if current == expected:
        return
    seen = [written for written, *_ in table.data.versions(key) if written <= timestamp]
    raise YtError(
        OFFSET_CONFLICT,
        f"Offset conflict at partition {partition} of consumer {consumer}: "
        f"expected offset {expected}, found offset {current}",
        {
            "partition": partition,
            "consumer": consumer,
            "expected_offset": expected,
            "current_offset": current,
            "current_offset_timestamp": yson.YsonUint64(max(seen, default=0)),
        },
    )
