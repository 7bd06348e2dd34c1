"""The composition root: one object that holds the whole state of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import ids
from ..clock import Clock
from .cypress import Cypress
from .transactions import Transactions

if TYPE_CHECKING:
    from .transactions import Transaction

CLUSTER_NAME = "minicluster"


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

    def next_revision(self) -> int:
        self._revision += 1
        return self._revision

    def transaction(self, transaction_id: str) -> Transaction:
        """The transaction of that id, of either kind.

        Raises: YtError 11000.
        """
        return self.transactions.get(transaction_id)

    def tick(self) -> None:
        """What the passing of time brings about: called before each request."""
        self.transactions.expire()
