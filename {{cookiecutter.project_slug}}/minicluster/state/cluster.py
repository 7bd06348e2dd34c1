"""The composition root: one object that holds the whole state of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..clock import Clock
from ..errors import no_such_transaction
from . import objects, table_kinds
from .cypress import Cypress
from .producers import Producers
from .queues import Queues
from .tables import Tables
from .tablet_tx import TabletTransactions
from .transactions import Transactions

if TYPE_CHECKING:
    from . import tablet_tx, transactions

CLUSTER_NAME = "minicluster"

__all__ = ["CLUSTER_NAME", "Cluster", "table_kinds"]


class Cluster:
    """Everything that survives a restart of the front ends.

    `cypress`, `transactions` (master), `tables`, `tablet_transactions` and `queues` are the seams
    that commands use. Nothing here waits or does I/O: each call runs to its end.
    """

    def __init__(self, name: str = CLUSTER_NAME, clock: Clock | None = None) -> None:
        self.name = name
        self.clock = clock or Clock()
        self._revision = 0
        self.cypress = Cypress(self)
        self.transactions = Transactions(self)
        self.tables = Tables(self)
        self.tablet_transactions = TabletTransactions(self)
        self.queues = Queues(self)
        self.producers = Producers(self)
        objects.populate(self)

    def next_revision(self) -> int:
        self._revision += 1
        return self._revision

    def transaction(self, transaction_id: str) -> transactions.Transaction | tablet_tx.Transaction:
        """The transaction of that id, of either kind.

        Raises: YtError 11000.
        """
        found = self.transactions.running.get(transaction_id) or self.tablet_transactions.find(
            transaction_id
        )
        if found is None:
            raise no_such_transaction(transaction_id)
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Takes over a saved state; time stamps go on growing."""
        passed = self.clock.last_timestamp
        self.__dict__.update(state)
        self.clock.after(passed)

    def tick(self) -> None:
        """What the passing of time brings about: called before each request."""
        self.transactions.expire()
        self.tablet_transactions.expire()
        self.queues.agent.tick()
