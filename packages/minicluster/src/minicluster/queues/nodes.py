"""The node kinds `queue_consumer` and `queue_producer`, and what queues add to tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..cypress.kinds import Getter, Kind, Kinds, Setter
from ..cypress.model import Node
from ..cypress.store import Store
from ..rows.schema import TableSchema
from ..tables.table import MOUNTED, Table, new_table
from .agent import QueueAgent
from .consumers import CONSUMER_SCHEMA
from .producers import PRODUCER_SCHEMA
from .reports import REPORTS, reports

QUEUE_CONSUMER = 1700
QUEUE_PRODUCER = 1701


def register(kinds: Kinds, store: Store, agent: QueueAgent) -> None:
    """Give tables the agent's attributes, and add the tables of consumers and producers."""
    table = _reported(kinds["table"], agent)
    kinds.add(table)
    for type, code, schema in (
        ("queue_consumer", QUEUE_CONSUMER, CONSUMER_SCHEMA),
        ("queue_producer", QUEUE_PRODUCER, PRODUCER_SCHEMA),
    ):
        create = _creating(store, f"treat_as_{type}", schema)
        kinds.add(replace(table, type=type, code=code, stored_as="table", create=create))


def _reported(table: Kind, agent: QueueAgent) -> Kind:
    """Return the kind of tables with the attributes that the queue agent reports."""

    def absent(node: Node) -> frozenset[str]:
        return table.absent(node) | {name for name in REPORTS if not reports(node, name)}

    return replace(
        table,
        builtin={**table.builtin, **{name: _report(agent, name) for name in REPORTS}},
        settable={name: _waking(agent, setter) for name, setter in table.settable.items()},
        absent=absent,
        opaque=table.opaque | frozenset(REPORTS),
    )


def _report(agent: QueueAgent, name: str) -> Getter:
    return lambda node: agent.report(node, name)


def _waking(agent: QueueAgent, setter: Setter) -> Setter:
    """Wrap a setter: after a change of a setting, which may govern trimming, the agent looks."""

    def set_attribute(node: Node, value: Any) -> None:
        setter(node, value)
        agent.wake()

    return set_attribute


def _creating(store: Store, mark: str, schema: TableSchema) -> Callable[[dict[str, Any]], Table]:
    """Make a table that is ready for use (the server's queue_client/queue_consumer_init.cpp)."""

    def create(attributes: dict[str, Any]) -> Table:
        attributes.setdefault(mark, True)
        attributes.update(dynamic=True)
        table = new_table(attributes, schema)
        for tablet in table.tablets:
            tablet.mount_revision = store.next_revision()
            tablet.state = MOUNTED
        return table

    return create
