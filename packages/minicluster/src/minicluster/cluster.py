"""The composition root: it makes the parts of a cluster and hands each one what it uses."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .core.clock import Clock
from .core.ids import CLUSTER_NAME
from .core.memory import Memory
from .cypress import files, objects, subjects, system
from .cypress.commands import Cypress
from .cypress.commits import Commits
from .cypress.expiration import Expiration
from .cypress.kinds import Kinds
from .cypress.store import Store
from .cypress.transactions import Transactions
from .operations.bulk import Bulk
from .operations.scheduler import Nodes, NoNodes, Scheduler
from .query import computed
from .queues import nodes as queue_nodes
from .queues import registrations
from .queues.agent import QueueAgent
from .queues.consumers import Consumers
from .queues.producers import Producers
from .queues.queues import Queues
from .queues.reports import Reporter
from .rows.computed import use
from .tables import nodes as table_nodes
from .tables.commands import Tables
from .tables.retention import Retention
from .tables.transactions import TabletTransactions

STATEFUL = (
    "clock",
    "store",
    "transactions",
    "tablet_transactions",
    "tables",
    "agent",
    "scheduler",
)
"""The parts that a saved state holds; the others only work on these."""


class Cluster:
    """Everything that survives a restart of the front ends.

    `cypress`, `transactions` (master), `tables`, `tablet_transactions`, `queues`, `producers` and
    `scheduler` are the seams that commands use. Nothing here waits or does I/O, but for the
    `nodes` that the scheduler is given: each call runs to its end.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.name = CLUSTER_NAME
        self.clock = clock = clock or Clock()
        self.kinds = kinds = Kinds()
        self.store = store = Store(clock)
        self.commits = commits = Commits()
        self.transactions = Transactions(clock, store, commits)
        self.cypress = cypress = Cypress(clock, kinds, store, self.transactions)
        self.expiration = Expiration(clock, store, cypress)
        self.tablet_transactions = tablet = TabletTransactions(clock, store, commits)
        self.tables = tables = Tables(clock, store, cypress, tablet)
        self.retention = Retention(clock, store)
        self.memory = Memory(tables.held)
        self.consumers = consumers = Consumers(self.name, cypress, tables)
        self.reporter = reporter = Reporter(self.name, clock, tables, consumers)
        self.agent = QueueAgent(clock, store, tables, tablet, consumers, reporter)
        self.queues = Queues(self.name, tables, tablet, consumers, self.agent)
        self.producers = Producers(self.name, cypress, tables, tablet)
        self.nodes: Nodes = NoNodes()
        self.bulk = Bulk(cypress, tables, self.transactions)
        self.scheduler = Scheduler(clock, cypress, self.nodes, self.bulk)
        use(computed.compiled)
        objects.register(kinds, self.transactions)
        files.register(kinds, cypress.exists)
        subjects.register(kinds)
        system.register(kinds)
        table_nodes.register(kinds, clock, tables)
        queue_nodes.register(kinds, store, self.agent)
        system.populate(cypress, self.name)
        registrations.populate(cypress, tables)

    def run_jobs_on(self, nodes: Nodes) -> None:
        """Let operations run: from now on, the scheduler starts their jobs on these nodes."""
        self.nodes = self.scheduler.nodes = nodes

    def state(self) -> dict[str, dict[str, Any]]:
        """Return the fields of each stateful part, without its references to other parts."""
        parts = {id(part) for part in vars(self).values()}
        return {
            name: {
                field: value
                for field, value in vars(getattr(self, name)).items()
                if id(value) not in parts
            }
            for name in STATEFUL
        }

    def restore(self, state: dict[str, dict[str, Any]]) -> None:
        """Replace the state by a saved one, part by part; timestamps continue to grow."""
        passed = self.clock.last_timestamp
        self.scheduler.stop()
        for name in STATEFUL:
            vars(getattr(self, name)).update(state[name])
        self.clock.after(passed)
        self.scheduler.abort_loaded()

    def renew_leases(self) -> None:
        """Renew the lease of every transaction, as a ping does."""
        self.transactions.renew()
        self.tablet_transactions.renew()

    def committing(self, transaction_id: str) -> AbstractContextManager[None]:
        """For the time that a commit is held between its arrival and its application."""
        return self.commits.accept(transaction_id)

    def pass_time(self, seconds: float) -> None:
        """Move the clock forward; all that was due by then has happened."""
        self.clock.advance(seconds)
        self.retention.run()
        self.expiration.run()
        self.tick()

    def tick(self) -> None:
        """Let the passing of time take effect; called before each request."""
        self.transactions.expire()
        self.tablet_transactions.expire()
        self.retention.tick()
        self.expiration.tick()
        self.memory.tick()
        self.agent.tick()
        self.scheduler.tick()
