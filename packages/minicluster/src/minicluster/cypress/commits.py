"""Commits on their way: accepted from the client, not yet applied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Commits(set[str]):
    """The transactions, master and tablet ones, whose commit the cluster has accepted.

    Such a transaction is no longer active, and the server lets only active ones expire
    (OnTransactionExpired in the transaction managers of master and tablet node).
    No saved state holds this: a request on its way belongs to the cluster that received it.
    """

    @contextmanager
    def accept(self, transaction_id: str) -> Iterator[None]:
        """Keep the transaction alive until the block is left."""
        self.add(transaction_id)
        try:
            yield
        finally:
            self.discard(transaction_id)
