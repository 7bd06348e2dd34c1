"""Registrations of consumers with queues, as rows of the table in which a cluster keeps them.

Columns and place: python/yt/environment/init_queue_agent_state.py (REGISTRATION_TABLE_SCHEMA);
client/queue_client/config.cpp, `state_write_path`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..cypress.commands import Cypress
from ..rows import wire
from ..rows.from_wire import Key
from ..rows.schema import sorted_schema
from ..tables.commands import Tables

PATH = "//sys/queue_agents/consumer_registrations"
SCHEMA = sorted_schema(
    ("queue_cluster", "string", False),
    ("queue_path", "string", False),
    ("consumer_cluster", "string", False),
    ("consumer_path", "string", False),
    ("vital", "boolean", False),
    ("partitions", "any", False),
    keys=4,
)


@dataclass
class Registration:
    """A consumer reads a queue; `vital` registrations hold back its trimming."""

    queue: str
    consumer: str
    vital: bool
    partitions: list[int] | None = None


def populate(cypress: Cypress, tables: Tables) -> None:
    """Make the table that a fresh cluster has."""
    cypress.create("table", PATH, attributes={"dynamic": True, "schema": SCHEMA.to_yson()})
    tables.mount(PATH)


def key_item(cluster: str, queue: str, consumer: str) -> dict[str, Any]:
    """Return the key of a registration as a row is given."""
    return {
        "queue_cluster": cluster,
        "queue_path": queue,
        "consumer_cluster": cluster,
        "consumer_path": consumer,
    }


def key(cluster: str, queue: str, consumer: str) -> Key:
    """Return the key of a registration as the table has it."""
    parts: list[Any] = []
    for value in key_item(cluster, queue, consumer).values():
        parts += [wire.STRING, value.encode()]
    return tuple(parts)


def from_row(cluster: str, row: Mapping[str, Any]) -> Registration | None:
    """Return the registration in a row of the table; None for one of another cluster.

    Whoever writes rows to the table registers consumers, and may have made another table there: a
    row that is no registration is None as well.
    """
    here = cluster.encode()
    queue, consumer = row.get("queue_path"), row.get("consumer_path")
    if not isinstance(queue, bytes) or not isinstance(consumer, bytes):
        return None
    if (row.get("queue_cluster"), row.get("consumer_cluster")) != (here, here):
        return None
    given = row.get("partitions")
    partitions = [n for n in given if isinstance(n, int)] if isinstance(given, list) else None
    return Registration(
        queue.decode(errors="replace"),
        consumer.decode(errors="replace"),
        bool(row.get("vital")),
        partitions,
    )
