"""Consumers: sorted tables that hold the index of the next row to read from each partition; and
which of them are registered with which queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from yt import yson

from ..core.errors import YtError, access_denied, generic
from ..cypress.commands import Cypress
from ..cypress.model import Node
from ..rows import wire
from ..rows.from_wire import DELETE, WRITE, Key
from ..rows.schema import sorted_schema
from ..tables.commands import Tables
from ..tables.table import Table
from . import registrations
from .registrations import Registration

# `create queue_consumer` makes it (documentation, "queues").
CONSUMER_SCHEMA = sorted_schema(
    ("queue_cluster", "string", True),
    ("queue_path", "string", True),
    ("partition_index", "uint64", True),
    ("offset", "uint64", True),
    ("meta", "any", False),
    keys=3,
)
_WITHOUT_META = replace(CONSUMER_SCHEMA, columns=CONSUMER_SCHEMA.columns[:-1])


class Consumers:
    """The positions of consumers, and their registrations with queues."""

    def __init__(self, cluster_name: str, cypress: Cypress, tables: Tables) -> None:
        self._cluster_name = cluster_name
        self._cypress = cypress
        self._tables = tables

    # Positions

    def consumer(self, path: str) -> tuple[Node, Table]:
        """Return a consumer's node and table: any table of one of two schemas.

        Source: client/queue_client/consumer_client.cpp, CreateConsumerClient.
        """
        node, table = self._tables.dynamic(path)
        actual = table.schema
        if not actual.unique_keys:
            raise generic(
                "Consumer schema must have unique keys, schema does not",
                actual_schema=actual.to_yson(),
            )
        if actual not in (CONSUMER_SCHEMA, _WITHOUT_META):
            raise generic(
                "Table schema is not recognized as a valid consumer schema",
                expected_schema=CONSUMER_SCHEMA.to_yson(),
                actual_schema=actual.to_yson(),
            )
        return node, table

    def offset(self, consumer: Table, queue_path: str, partition: int) -> int:
        """Return the next row that a consumer has to read; 0 when it has never moved."""
        return offset_in(consumer, consumer.data.get(self.key(queue_path, partition)))

    def last_consumed(self, consumer: Table, queue_path: str, partition: int) -> int:
        """Return the timestamp of the consumer's last move; 0 when it has never moved."""
        return consumer.data.last_write(self.key(queue_path, partition))

    def key(self, queue_path: str, partition: int) -> Key:
        return (
            wire.STRING,
            self._cluster_name.encode(),
            wire.STRING,
            queue_path.encode(),
            wire.UINT64,
            partition,
        )

    # Registrations

    def register(
        self, queue: str, consumer: str, vital: bool, partitions: list[int] | None = None
    ) -> None:
        """Register a consumer with a queue; a second time, replace the registration.

        Both have to be tables, of any kind (ytlib/queue_client/registration_manager_base.cpp).
        """
        queue_node, _ = self._tables.node(queue)
        consumer_node, _ = self._tables.node(consumer)
        key = registrations.key_item(self._cluster_name, queue_node.path, consumer_node.path)
        item = {**key, "vital": bool(vital), "partitions": partitions}
        self._tables.modify_items(registrations.PATH, WRITE, [item])

    def unregister(self, queue: str, consumer: str) -> None:
        """Remove a registration, if there is one; queue and consumer may be gone."""
        pair = self._cypress.canonical(queue), self._cypress.canonical(consumer)
        key = registrations.key_item(self._cluster_name, *pair)
        self._tables.modify_items(registrations.PATH, DELETE, [key])

    def canonical(self, path: str) -> str:
        """Return the path of the object, symlinks followed; `path` if there is no object."""
        return self._cypress.canonical(path)

    def registrations(
        self, queue: str | None = None, consumer: str | None = None
    ) -> list[Registration]:
        """Return the registrations of a queue, of a consumer, of the pair, or all."""
        queue_path = None if queue is None else self._cypress.canonical(queue)
        consumer_path = None if consumer is None else self._cypress.canonical(consumer)
        return [
            registration
            for registration in self._registered()
            if queue_path in (None, registration.queue)
            and consumer_path in (None, registration.consumer)
        ]

    def _registered(self) -> Iterator[Registration]:
        """Yield all registrations, in the order of their keys; none without a sorted table."""
        try:
            _, table = self._tables.sorted(registrations.PATH)
        except YtError:
            return
        names = [column.name for column in table.schema.columns]
        for _, row in table.data.scan():
            found = registrations.from_row(self._cluster_name, wire.to_dict(row, names))
            if found is not None:
                yield found

    def list_registrations(
        self, queue: str | None = None, consumer: str | None = None
    ) -> list[dict[str, Any]]:
        """Return registrations as the command does: a path is a string with a `cluster`."""
        return [
            {
                "queue_path": self._rich(registration.queue),
                "consumer_path": self._rich(registration.consumer),
                "vital": registration.vital,
                "partitions": registration.partitions,
            }
            for registration in self.registrations(queue, consumer)
        ]

    def _rich(self, path: str) -> Any:
        return yson.to_yson_type(path, attributes={"cluster": self._cluster_name})

    def require(self, queue: Node, consumer: Node) -> None:
        """Raise YtError when the consumer is not registered with the queue."""
        key = registrations.key(self._cluster_name, queue.path, consumer.path)
        if self._tables.sorted(registrations.PATH)[1].data.get(key) is None:
            # Code and wording: client/queue_client/registration_manager.cpp.
            raise access_denied(
                f"Consumer {self._cluster_name}:{consumer.path} is not registered for queue "
                f"{self._cluster_name}:{queue.path}",
                raw_queue=queue.path,
                raw_consumer=consumer.path,
            )


def offset_in(consumer: Table, row: bytes | None) -> int:
    """Return the position in a row of a consumer; 0 without a row."""
    if row is None:
        return 0
    for column, _, value in wire.values(row):
        if consumer.schema.columns[column].name == "offset" and isinstance(value, int):
            return value
    return 0
