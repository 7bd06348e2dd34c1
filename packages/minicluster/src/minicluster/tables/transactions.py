"""Tablet transactions: buffered modifications that become visible together, or not at all.

Reads see what was committed before the transaction started and never its own writes. Two
transactions that write one key of a sorted table conflict: the one that commits second fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..core import ids
from ..core.clock import Clock
from ..core.errors import (
    INVALID_TRANSACTION_STATE,
    NO_SUCH_TRANSACTION,
    YtError,
    around,
    generic,
    no_such_tablet,
    tablet_lock_conflict,
)
from ..cypress.commits import Commits
from ..cypress.model import Node
from ..cypress.store import Store
from ..rows import aggregates, wire
from ..rows.aggregates import flagged, without_flag
from ..rows.from_wire import (
    DELETE,
    Key,
    Modification,
    Update,
    key_reader,
    keys_of,
    update_key_reader,
)
from ..rows.schema import DATA_WEIGHT, TIMESTAMP, TableSchema, violation
from . import row_locks
from .mounts import Mounts
from .ordered import stamped
from .row_locks import Taken
from .sorted import VERSIONS, Version, stamps_after
from .table import MOUNTED, Table, not_mounted

MAX_ROWS_PER_TABLET = 100_000
"""`max_rows_per_transaction` of the proxies' default configuration (documentation, "transactions";
ytlib/api/native/tablet_commit_session.cpp)."""
TOO_MANY_ROWS = 1717

DEFAULT_TIMEOUT_MS = 15_000

HTTP_PROXY = "http"

CLUSTER_ID = f"Native(Name={ids.CLUSTER_NAME})"
"""As client connections name it (ytlib/api/native/connection.cpp, GetClusterId)."""

Change = bytes | Update | None
"""A row written whole, an update of some columns, or a deletion."""


@dataclass
class Buffered:
    """The changes that one transaction will make to one table."""

    table: Table
    path: str
    appended: dict[int, list[bytes]] = field(default_factory=dict)
    changed: dict[Key, Change] = field(default_factory=dict)
    locked: dict[Key, Taken] = field(default_factory=dict)
    """Locks that are taken without a write."""
    mounts: Mounts = field(default_factory=Mounts)
    """The tablets as the first change found them."""

    @property
    def touched(self) -> Collection[Key]:
        """The rows that are changed or locked."""
        return [*self.changed, *self.locked] if self.locked else self.changed

    def lock(self, taken: dict[Key, Taken]) -> None:
        for key, locks in taken.items():
            self.locked[key] = self.locked.get(key, {}) | locks

    def locks(self) -> dict[Key, Taken]:
        """Return the locks of each row; a row without a write of its own among them."""
        schema = self.table.schema
        every = row_locks.locks_of(schema, range(len(schema.columns)))
        found: dict[Key, Taken] = {}
        for key, change in self.changed.items():
            if change is None:
                found[key] = {row_locks.PRIMARY: row_locks.EXCLUSIVE}
            elif isinstance(change, dict):
                found[key] = row_locks.locks_of(schema, change)
            else:
                found[key] = every
        for key, taken in self.locked.items():
            found[key] = taken | found.get(key, {})
        return found


@dataclass
class Transaction:
    """A tablet transaction; `proxy` is the only one that knows it."""

    id: str
    start_timestamp: int
    proxy: str
    timeout: float
    deadline: float
    atomicity: str = "full"
    attributes: dict[str, Any] = field(default_factory=dict)
    buffered: dict[str, Buffered] = field(default_factory=dict)
    """By node id."""
    failure: dict[str, Any] | None = None
    """What the commit will fail with: the first row, or table, of a request that is wrong.

    A proxy takes in rows unseen (ytlib/api/native/transaction.cpp, PrepareRequests).
    """

    def buffer(self, node: Node, table: Table) -> Buffered:
        if node.id not in self.buffered:
            self.buffered[node.id] = Buffered(table, node.path, mounts=Mounts.of(table))
        return self.buffered[node.id]

    def fail(self, error: YtError) -> None:
        self.failure = self.failure or error.to_dict()


class TabletTransactions:
    """All tablet transactions that are alive."""

    def __init__(self, clock: Clock, store: Store, commits: Commits) -> None:
        self._clock = clock
        self._store = store
        self._commits = commits
        self._alive: dict[str, Transaction] = {}
        self.last_commit = 0
        self.rows_per_tablet = MAX_ROWS_PER_TABLET
        self.versions_per_row = VERSIONS

    def start(
        self,
        *,
        timeout_ms: int | None = None,
        proxy: str | None = None,
        attributes: dict[str, Any] | None = None,
        atomicity: str = "full",
        id: str | None = None,
    ) -> Transaction:
        """Start a transaction that only requests through `proxy` will find."""
        timeout = (DEFAULT_TIMEOUT_MS if timeout_ms is None else timeout_ms) / 1000
        transaction = Transaction(
            id=id or ids.new(ids.TABLET_TRANSACTION),
            start_timestamp=self._clock.timestamp(),
            proxy=proxy or HTTP_PROXY,
            timeout=timeout,
            deadline=self._clock.now() + timeout,
            atomicity=atomicity,
            attributes=attributes or {},
        )
        if transaction.id in self._alive:
            raise generic(f"Sticky transaction {transaction.id} already exists")
        self._alive[transaction.id] = transaction
        return transaction

    def get(self, transaction_id: str, proxy: str | None = None) -> Transaction:
        """Return the transaction and renew its lease, as any request of it does.

        Raises: YtError 11000 when it is over, or was started through another proxy: it lives in the
        memory of that one alone (server/lib/transactions, sticky transaction pool); YtError 11003
        when its commit is on its way.
        """
        transaction = self._known(transaction_id, proxy)
        if transaction_id in self._commits:
            # ytlib/api/native/transaction.cpp, Commit
            raise YtError(
                INVALID_TRANSACTION_STATE,
                f'Cannot commit since transaction {transaction_id} is in "committing" state',
            )
        return transaction

    def _known(self, transaction_id: str, proxy: str | None) -> Transaction:
        transaction = self._alive.get(transaction_id)
        if transaction is None or transaction.proxy != (proxy or HTTP_PROXY):
            raise YtError(
                NO_SUCH_TRANSACTION,
                f"Sticky transaction {transaction_id} is not found",
                {"transaction_id": transaction_id},
            )
        transaction.deadline = self._clock.now() + transaction.timeout
        return transaction

    def find(self, transaction_id: str) -> Transaction | None:
        """Return the transaction whatever its proxy, without renewing it."""
        return self._alive.get(transaction_id)

    def ping(self, transaction_id: str, proxy: str | None = None) -> None:
        self._known(transaction_id, proxy)

    def abort(self, transaction_id: str, proxy: str | None = None) -> None:
        del self._alive[self.get(transaction_id, proxy).id]

    def commit(self, transaction_id: str, proxy: str | None = None) -> int:
        """Apply everything and return the commit timestamp; on failure nothing is applied.

        Raises YtError with one of these codes in it: 307 and others for a row that its table does
        not take, 1700 on a write conflict, 1702 when a tablet is not mounted, 1701 or 1704 when it
        was mounted again since it was written to, 1717 when there are too many rows for one tablet.
        The transaction is over in any case.
        """
        transaction = self.get(transaction_id, proxy)
        del self._alive[transaction.id]
        try:
            self._require_applicable(transaction)
        except YtError as error:
            message = f"Error committing transaction {transaction.id}"
            raise around(message, error, cluster_id=CLUSTER_ID) from None
        timestamp = self._clock.timestamp()
        for buffered in transaction.buffered.values():
            _apply(buffered, timestamp, self.versions_per_row)
        self.last_commit = timestamp
        return timestamp

    def _require_applicable(self, transaction: Transaction) -> None:
        """Raise the YtError that a commit of the transaction fails with."""
        if transaction.failure is not None:
            raise YtError.from_dict(transaction.failure)
        for buffered in transaction.buffered.values():
            _check_tablets(buffered, self.rows_per_tablet)
        for node_id, buffered in transaction.buffered.items():
            try:
                self._require_alive(node_id, buffered)
                _check_rows(transaction, buffered)
            except YtError as error:
                # ytlib/api/native/tablet_commit_session.cpp, OnResponse and OnSessionsCommitted
                sent = around("Error sending transaction rows", error, **_where(node_id, error))
                raise around("Failed to commit tablet sessions", sent) from None

    def _require_alive(self, node_id: str, buffered: Buffered) -> None:
        """Raise YtError when the table was removed; a moved one has a new node and its tablets."""
        nodes = self._store.nodes
        if node_id in nodes or any(node.payload is buffered.table for node in nodes.values()):
            return
        tablet_id = buffered.table.tablets[0].id
        raise no_such_tablet(f"No such tablet {tablet_id}", path=buffered.path, tablet_id=tablet_id)

    @contextmanager
    def within(
        self, transaction: Transaction | None, atomicity: str = "full"
    ) -> Iterator[Transaction]:
        """Yield the given transaction; or for None one of its own, committed at the end."""
        if transaction is not None:
            yield transaction
            return
        own = self.start(atomicity=atomicity)
        try:
            yield own
        except BaseException:
            self.abort(own.id)
            raise
        self.commit(own.id)

    def renew(self) -> None:
        """Renew the lease of every transaction."""
        for transaction in self._alive.values():
            transaction.deadline = self._clock.now() + transaction.timeout

    def expire(self) -> None:
        """Aborts the transactions whose lease has run out."""
        now = self._clock.now()
        for transaction in [t for t in self._alive.values() if t.deadline < now]:
            if transaction.id not in self._commits:
                del self._alive[transaction.id]

    def drop_proxy(self, proxy: str) -> None:
        """Forgets the transactions of an RPC proxy that went down.

        A commit that it has passed on takes place without it.
        """
        for transaction in [t for t in self._alive.values() if t.proxy == proxy]:
            if transaction.id not in self._commits:
                del self._alive[transaction.id]


def _where(table_id: str, error: YtError) -> dict[str, Any]:
    named = {"tablet_id": error.attributes["tablet_id"]} if "tablet_id" in error.attributes else {}
    return {"table_id": table_id, **named}


def submitting(path: str, error: YtError) -> YtError:
    """Return the error of a proxy that finds no tablet for rows (SubmitRows)."""
    return around(f"Error submitting rows for table {path}", error)


def _check_tablets(buffered: Buffered, rows_per_tablet: int) -> None:
    """Raise what the proxy finds before it sends rows to their tablets."""
    table, path, touched = buffered.table, buffered.path, buffered.touched
    counts = Counter({index: len(added) for index, added in buffered.appended.items()})
    counts.update(table.tablets_of(touched))
    for index, count in counts.items():
        if index >= len(table.tablets):
            continue  # the table was cut into fewer tablets since: `Mounts` finds that out
        tablet = table.tablets[index]
        if tablet.state != MOUNTED:
            raise submitting(path, not_mounted(tablet, path))
        if count > rows_per_tablet:
            # Older servers name the limit alone (ytlib/api/native/tablet_request_batcher.cpp).
            raise YtError(
                TOO_MANY_ROWS,
                "Transaction affects too many rows in tablet",
                {"limit": rows_per_tablet, "tablet_id": tablet.id},
            )


def _check_rows(transaction: Transaction, buffered: Buffered) -> None:
    """Raise what the tablets answer to the rows."""
    table, path = buffered.table, buffered.path
    if table.atomicity != transaction.atomicity:
        # server/node/tablet_node/tablet_service.cpp, Write
        raise generic(
            f'Invalid atomicity mode: "{transaction.atomicity}" instead of "{table.atomicity}"',
            path=path,
        )
    buffered.mounts.require_same(table, buffered.appended, buffered.touched, path)
    if transaction.atomicity == "full":
        winner = _winner(buffered, transaction.start_timestamp)
        if winner is not None:
            key, timestamp = winner
            raise tablet_lock_conflict(
                "Row lock conflict due to concurrent write",
                winner_transaction_commit_timestamp=timestamp,
                loser_transaction_id=transaction.id,
                table_path=path,
                tablet_id=table.tablets[table.tablet_of(key)].id,
                key=[wire.to_python(*part) for part in zip(key[::2], key[1::2], strict=True)],
                **({} if table.has_locks else {"lock": row_locks.PRIMARY_NAME}),
            )
    width = len(table.schema.columns)
    for key, change in buffered.changed.items():
        if isinstance(change, dict) and len(change) < width and table.data.get(key) is None:
            _require_columns(table.schema, change)


def _winner(buffered: Buffered, start: int) -> tuple[Key, int] | None:
    """Return a row that another transaction has taken since `start`, and when; None for none."""
    table = buffered.table
    if not (table.has_locks or buffered.locked or table.locks.read or table.locks.written):
        return table.data.newer_write(buffered.changed, start)
    for key, taken in buffered.locks().items():
        # Without lock groups the version of a row is the time of its one lock.
        written = 0 if table.has_locks else table.data.last_write(key)
        time = max(written if written > start else 0, table.locks.newer(key, taken, start) or 0)
        if time:
            return key, time
    return None


def _apply(buffered: Buffered, timestamp: int, versions: int) -> None:
    table = buffered.table
    if table.has_locks or buffered.locked:
        for key, taken in buffered.locks().items():
            table.locks.take(key, taken, timestamp)
    table.last_commit = timestamp
    for index, added in buffered.appended.items():
        data = table.tablets[index].data
        ids_ = [_column_id(table.schema, name) for name in (TIMESTAMP, DATA_WEIGHT)]
        rows, data.data_weight = stamped(added, ids_[0], ids_[1], timestamp, data.data_weight)
        data.append(rows, timestamp)
    schema, last = table.schema, table.data.last
    table.data.put_all(
        (
            (key, _updated(schema, last(key), change, timestamp))
            if isinstance(change, dict)
            else (key, (timestamp, change, None, None))
            for key, change in buffered.changed.items()
        ),
        versions,
    )


def _updated(schema: TableSchema, last: Version | None, change: Update, timestamp: int) -> Version:
    """Return the version of a row after an update."""
    stamps = stamps_after(last, change, len(schema.columns), timestamp)
    given = {index: piece for index, piece in change.items() if flagged(piece)} or None
    before = last[1] if last else None
    row = schema.number_rows.after(before, change) if schema.number_rows and before else None
    if row is None:
        row = merged(schema, schema.pieces_of(before) if before else {}, change)
    return timestamp, row, stamps, given


def _column_id(schema: TableSchema, name: str) -> int | None:
    return next((i for i, column in enumerate(schema.columns) if column.name == name), None)


def merged(schema: TableSchema, old: Update, change: Update) -> bytes:
    """Return the stored row after an update of `old`; columns in neither become null."""
    pieces = together(schema, old, change)
    for index in range(len(schema.columns)):
        if (piece := pieces.get(index)) is None:
            pieces[index] = wire.encode_value(index, wire.NULL, None)
        elif flagged(piece):
            pieces[index] = without_flag(piece)
    return wire.from_chunks([pieces[index] for index in range(len(schema.columns))])


def together(schema: TableSchema, old: Update, change: Update) -> Update:
    """Return one update for two, or the pieces of a row after one; values are aggregated.

    Source: ytlib/table_client/row_merger.cpp, TUnversionedRowMerger.
    """
    result = old | change
    for index, fold in schema.folds:
        before, new = old.get(index), change.get(index)
        if before is not None and new is not None and flagged(new):
            result[index] = aggregates.added(fold, before, new)
    return result


def _require_columns(schema: TableSchema, pieces: Update) -> None:
    for index, column in enumerate(schema.columns):
        if column.required and index not in pieces:
            raise violation(f'Missing required column "{column.name}" in table schema')


def changes(
    buffered: Buffered, rows: Sequence[bytes], modifications: Iterable[Modification]
) -> dict[Key, Change]:
    """Return the changes by key that rows of a sorted table, which are written whole, and after
    them modifications make on top of `buffered`."""
    schema = buffered.table.schema
    key_of, key_of_update = key_reader(schema), update_key_reader(schema)
    fresh: dict[Key, Change] = dict(zip(keys_of(schema, rows), rows, strict=True))
    for kind, _, given in modifications:
        if not isinstance(given, dict):
            fresh[key_of(given)] = None if kind == DELETE else given
            continue
        key = key_of_update(given)
        before = fresh.get(key, buffered.changed.get(key, {}))
        if isinstance(before, dict):
            fresh[key] = together(schema, before, given) if before else given
            continue
        if before is None:
            _require_columns(schema, given)
        fresh[key] = merged(schema, schema.pieces_of(before) if before else {}, given)
    return fresh
