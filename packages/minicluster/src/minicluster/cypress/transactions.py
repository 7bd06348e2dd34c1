"""Master transactions: nested, kept alive by pings, isolated by branches of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import ids
from ..core.clock import Clock
from ..core.errors import PREREQUISITE_CHECK_FAILED, YtError, generic, no_such_transaction
from . import locks
from .commits import Commits
from .model import PENDING, SNAPSHOT, Branch, Node, Transaction
from .store import Store

DEFAULT_TIMEOUT_MS = 15_000
"""The default of `start_transaction` (documentation, "transactions")."""
MAX_DEPTH = 50


class Transactions:
    """`cluster.transactions`: the master transactions that are running."""

    def __init__(self, clock: Clock, store: Store, commits: Commits) -> None:
        self._clock = clock
        self._store = store
        self._commits = commits
        self.running: dict[str, Transaction] = {}

    def start(
        self,
        *,
        parent: str | None = None,
        timeout_ms: int | None = None,
        deadline: float | None = None,
        attributes: dict[str, Any] | None = None,
        prerequisites: Sequence[str] = (),
    ) -> str:
        """Start a transaction and return its id.

        Raises YtError NO_SUCH_TRANSACTION when the parent or a prerequisite is not running.
        """
        holder = self.find(parent)
        for prerequisite in prerequisites:
            self.require(prerequisite)
        if holder is not None and sum(1 for _ in holder.ancestry()) >= MAX_DEPTH:
            raise generic(f"Transaction depth limit reached: {MAX_DEPTH}")
        now = self._clock.now()
        timeout_ms = DEFAULT_TIMEOUT_MS if timeout_ms is None else timeout_ms
        kind = ids.NESTED_TRANSACTION if holder else ids.MASTER_TRANSACTION
        transaction = Transaction(
            ids.new(kind),
            holder,
            timeout_ms / 1000,
            now,
            now,
            deadline,
            dict(attributes or {}),
            list(prerequisites),
        )
        if holder is not None:
            holder.children.append(transaction)
        self.running[transaction.id] = transaction
        return transaction.id

    def get(self, transaction_id: str) -> Transaction:
        """Return a running transaction. Raises YtError NO_SUCH_TRANSACTION."""
        transaction = self.running.get(transaction_id)
        if transaction is None:
            raise no_such_transaction(transaction_id)
        return transaction

    def find(self, transaction_id: str | None) -> Transaction | None:
        """Return the transaction; None for no id, which clients also write as 0-0-0-0."""
        if transaction_id is None or transaction_id == ids.NULL:
            return None
        return self.get(transaction_id)

    def ping(self, transaction_id: str, *, ping_ancestors: bool = False) -> None:
        transaction = self.get(transaction_id)
        now = self._clock.now()
        for pinged in transaction.ancestry():
            pinged.pinged = now
            if not ping_ancestors:
                break

    def renew(self) -> None:
        """Renew the lease of every transaction that is running."""
        for transaction in self.running.values():
            transaction.pinged = self._clock.now()

    def commit(self, transaction_id: str) -> None:
        """Hand the changes to the parent, or apply them to the nodes.

        Nested transactions that are still running are aborted (documentation, "transactions").
        """
        transaction = self.get(transaction_id)
        for prerequisite in transaction.prerequisites:
            self.require(prerequisite)
        for child in list(transaction.children):
            self._abort(child)
        parent = transaction.parent
        for branch in transaction.branches.values():
            if branch.frozen is not None:
                continue
            replaced = self._replaced(branch, parent)
            if parent is None:
                branch.apply()
            else:
                self.branch(parent, branch.node).merge(branch)
            for node in replaced:
                self._store.destroy(node)
        for node in transaction.made:
            node.made_in = parent.id if parent else None
        if parent is not None:
            parent.made.extend(transaction.made)
        self._finish(transaction, heir=parent)

    def abort(self, transaction_id: str) -> None:
        """Abort a transaction; one that is over counts as aborted (server test, see FACTS.md)."""
        if transaction_id in self.running:
            self._abort(self.running[transaction_id])

    def expire(self) -> None:
        """Abort the transactions that were not pinged in time."""
        if not self.running:
            return
        now = self._clock.now()
        for transaction in list(self.running.values()):
            if transaction.id in self._commits:
                continue
            if transaction.expires < now and transaction.id in self.running:
                self._abort(transaction)

    def branch(self, transaction: Transaction, node: Node) -> Branch:
        """Return the transaction's branch of the node; make it if there is none."""
        return transaction.branches.setdefault(node.id, Branch(node))

    def require(self, prerequisite: str) -> None:
        """Raise YtError unless a transaction is running that another request depends on."""
        if prerequisite not in self.running:
            raise YtError(
                PREREQUISITE_CHECK_FAILED,
                f"Prerequisite check failed: transaction {prerequisite} is missing",
                {"prerequisite_transaction_id": prerequisite},
            )

    def _abort(self, transaction: Transaction) -> None:
        for child in list(transaction.children):
            self._abort(child)
        made = list(transaction.made)
        self._finish(transaction, heir=None)
        for node in made:
            self._store.forget(node)

    def _finish(self, transaction: Transaction, heir: Transaction | None) -> None:
        touched = {lock.node.id: lock.node for lock in transaction.locks.values()}
        for lock in list(transaction.locks.values()):
            if heir is None or lock.request.mode == SNAPSHOT or lock.state == PENDING:
                locks.release(lock)
            else:
                lock.transaction = heir
                heir.locks[lock.id] = lock
        transaction.locks.clear()
        del self.running[transaction.id]
        if transaction.parent is not None:
            transaction.parent.children.remove(transaction)
        transaction.branches.clear()
        self._store.serve_lock_queues(touched.values())

    @staticmethod
    def _replaced(branch: Branch, parent: Transaction | None) -> list[Node]:
        """Return the children that no transaction sees once the branch is merged."""
        gone = []
        for name, child in branch.children.items():
            held = parent.branches.get(branch.node.id) if parent else None
            if held is not None and name in held.children:
                old = held.children[name]
            else:
                old = branch.node.children.get(name)
                # Outside `parent` the old child lives on until that is committed too.
                if parent is not None:
                    continue
            if old is not None and old is not child:
                gone.append(old)
        return gone
