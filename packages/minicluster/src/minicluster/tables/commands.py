"""Commands on dynamic tables by path: on their rows, and on their tablets."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from ..core import ids
from ..core.clock import Clock
from ..core.errors import (
    NO_SUCH_METHOD,
    RESOLVE,
    TABLE_MUST_BE_SORTED,
    RefusedError,
    YtError,
    around,
    column_not_found,
    generic,
    tablet_not_mounted,
)
from ..cypress import locks
from ..cypress.commands import Cypress
from ..cypress.model import EXCLUSIVE, Node, Request
from ..cypress.store import Store
from ..rows import wire
from ..rows.aggregates import with_flag
from ..rows.bulk import ByTablet
from ..rows.from_wire import DELETE, UPDATE, WRITE, Key, Modification, key_of
from ..rows.from_yson import Item, ItemReader, encode
from ..rows.rowset import Rowset
from ..rows.schema import TableSchema
from . import alter, retention, row_locks, static, tablets
from .mount_cache import MountCache
from .row_locks import Taken
from .sorted import Version
from .table import (
    MOUNTED,
    READABLE,
    UNMOUNTED,
    Table,
    Tablet,
    not_mounted,
    require_readable,
    tablet_at,
)
from .transactions import TabletTransactions, Transaction, changes, submitting
from .upload import upload


def _wanted(schema: TableSchema, columns: Sequence[str] | None) -> list[int]:
    """Return the indexes of columns by name; of all for None. Raises YtError."""
    if columns is None:
        return list(range(len(schema.columns)))
    known = {column.name: index for index, column in enumerate(schema.columns)}
    for name in columns:
        if name not in known:
            raise column_not_found(name)
    return [known[name] for name in columns]


def _no_mount_info(path: str, what: str, error: YtError) -> YtError:
    master = around("Error communicating with master", error)
    stage = around(f"Error getting {what} table {path}", master)
    return around(f"Error getting mount info for {path}", stage)


def _of_attributes(error: YtError) -> YtError:
    """Return the error of a proxy that asks for all attributes of what is not there."""
    path = error.attributes.get("path")
    if error.code != RESOLVE or path is None:
        return error
    return YtError(RESOLVE, f"Error resolving path {path}/@", {"path": f"{path}/@"}, error.inner)


@contextmanager
def _at_commit(transaction: Transaction) -> Iterator[None]:
    """Keep an error for the commit, which is when a proxy finds it."""
    try:
        yield
    except RefusedError:
        raise
    except YtError as error:
        transaction.fail(error)


@contextmanager
def _preparing(path: str) -> Iterator[None]:
    """Say which table's rows were wrong (ytlib/api/native/transaction.cpp, PrepareRows)."""
    try:
        yield
    except RefusedError:
        raise
    except YtError as error:
        raise around(f"Error preparing rows for table {path}", error) from None


def require_lookup(partial: bool, keep_missing: bool) -> None:
    """Raise YtError for options that contradict each other; nothing is partial here otherwise.

    Source: ytlib/api/native/client_dynamic_tables_impl.cpp, DoLookupRowsOnce.
    """
    if partial and keep_missing:
        raise generic(
            'Options "enable_partial_result" and "keep_missing_rows" cannot be used together'
        )


def _aggregating(schema: TableSchema, modification: Modification) -> Modification:
    """Return the write with the flag (client/table_client/value_consumer.cpp, OnMyValue)."""
    _, tablet, row = modification
    pieces = row if isinstance(row, dict) else wire.chunks(row)
    flags = {
        index: with_flag(piece)
        for index, piece in pieces.items()
        if schema.columns[index].aggregate
    }
    return UPDATE, tablet, pieces | flags


def _require_sorted(path: str, table: Table, kinds: Iterable[int]) -> None:
    """Raise YtError for a modification that an ordered table does not know."""
    if table.sorted or {WRITE}.issuperset(kinds):
        return
    what = "deletes" if DELETE in kinds else "lock"
    message = f"Cannot perform {what} in a non-sorted table {path}"
    raise YtError(TABLE_MUST_BE_SORTED, message)


class Tables:
    """`cluster.tables`. Paths may be symlinks; all failures are YtError."""

    def __init__(
        self, clock: Clock, store: Store, cypress: Cypress, transactions: TabletTransactions
    ) -> None:
        self._clock = clock
        self._store = store
        self._cypress = cypress
        self._transactions = transactions
        # Seeded, so that a run with the same requests puts its rows into the same tablets.
        self._random = random.Random(0)
        self.mount_cache = MountCache()
        self.tablet_changes = 0
        """How often tablets may have changed their state."""

    def held(self) -> int:
        """Return how many rows all tables hold in memory."""
        nodes = self._store.nodes.values()
        return sum(node.payload.held() for node in nodes if isinstance(node.payload, Table))

    def node(self, path: str, tx: str | None = None) -> tuple[Node, Table]:
        """Return the node of a table and the table. Raises YtError if there is no table."""
        node = self._cypress.resolve(path, tx=tx)
        if not isinstance(node.payload, Table):
            raise generic(f'Invalid type of {path}: expected "table", actual "{node.type}"')
        return node, node.payload

    def dynamic(self, path: str) -> tuple[Node, Table]:
        """Return a dynamic table as proxies find one: by the cache of mount infos.

        The chain of errors: ytlib/tablet_client/native_table_mount_cache.cpp, TGetSession.
        """
        remembered = self._remembered(path)
        if remembered is not None:
            return remembered
        try:
            node = self._cypress.resolve(path)
        except YtError as error:
            raise _no_mount_info(path, "attributes of", _of_attributes(error)) from None
        table = node.payload
        if not isinstance(table, Table):
            unknown = YtError(NO_SUCH_METHOD, '"GetMountInfo" method is not supported')
            raise _no_mount_info(path, "mount info for", unknown)
        if not table.dynamic:
            raise around(
                f"Error getting mount info for {path}", generic(f"Table {path} is not dynamic")
            )
        self.mount_cache.keep(path, node.id, self._clock.now())
        return node, table

    def _remembered(self, path: str) -> tuple[Node, Table] | None:
        """Return what a proxy remembers of a path.

        It asks again if the table is gone or is mounted nowhere (client/tablet_client/
        table_mount_cache_detail.cpp, InvalidateOnError).
        """
        node = self._store.nodes.get(self.mount_cache.find(path, self._clock.now()) or "")
        if node is None or not isinstance(node.payload, Table) or not node.payload.dynamic:
            return None
        return (node, node.payload) if node.payload.state != UNMOUNTED else None

    def sorted(self, path: str) -> tuple[Node, Table]:
        node, table = self.dynamic(path)
        if not table.sorted:
            raise generic(f"Table {path} is not sorted")
        return node, table

    def ordered(self, path: str) -> tuple[Node, Table]:
        node, table = self.dynamic(path)
        if table.sorted:
            raise generic(f"Table {path} is not ordered")
        return node, table

    def encode(self, path: str, given: Iterable[Item]) -> tuple[list[str], list[bytes]]:
        """Return (name table, wire rows) of rows or keys given as maps of YSON values."""
        return encode(self.dynamic(path)[1].schema, given)

    def modify(
        self,
        path: str,
        modifications: Sequence[tuple[int, bytes]],
        names: Sequence[str],
        *,
        tx: Transaction | None = None,
    ) -> None:
        """Buffer rows in a tablet transaction, or write them in one of their own.

        `modifications` are (kind, wire row) with kind 0 write, 1 delete, 3 update; column ids index
        `names`. A row that the table does not take makes the commit fail.
        """
        with self._transactions.within(tx) as transaction, _at_commit(transaction):
            node, table = self.dynamic(path)
            with _preparing(path):
                _require_sorted(path, table, [kind for kind, _ in modifications])
                reader = table.reader(names, path)
                given = [reader.modification(kind, row) for kind, row in modifications]
            self._modify(node, table, given, transaction)

    def modify_rowset(
        self,
        path: str,
        rowset: bytes,
        kinds: Sequence[int],
        names: Sequence[str],
        *,
        tx: Transaction | None = None,
    ) -> None:
        """Modify as `modify` does, by rows as a client sends them and a kind for each."""
        with self._transactions.within(tx) as transaction, _at_commit(transaction):
            node, table = self.dynamic(path)
            with _preparing(path):
                _require_sorted(path, table, kinds)
                whole, others = table.reader(names, path).rowset(rowset, kinds)
            self._modify(node, table, others, transaction, whole=whole)

    def lock_rowset(
        self,
        path: str,
        rowset: bytes,
        names: Sequence[str],
        locks: Sequence[Taken],
        tx: Transaction,
    ) -> None:
        """Take the locks of each row of a rowset; write those that have more than a key."""
        rows = [row for row in wire.split(rowset) if row is not None]
        if len(rows) != len(locks):
            raise generic(f"{len(locks)} masks of locks for {len(rows)} rows")
        with _at_commit(tx):
            node, table = self.dynamic(path)
            with _preparing(path):
                _require_sorted(path, table, [UPDATE])
                count = table.schema.key_count
                reader = table.reader(names, path)
                written = [row for row in rows if len(wire.values(row)) > count]
                keys = [key_of(wire.from_chunks(reader.key_chunks(row)), count) for row in rows]
            self.modify(path, [(UPDATE, row) for row in written], names, tx=tx)
            tx.buffer(node, table).lock(dict(zip(keys, locks, strict=True)))

    def modify_items(
        self,
        path: str,
        kind: int,
        items: Iterable[Item],
        *,
        tx: Transaction | None = None,
        atomicity: str = "full",
        aggregate: bool = False,
    ) -> None:
        """Modify as `modify` does, by rows or keys given as maps of YSON values.

        `atomicity` is that of the transaction if there is none. With `aggregate`, the values of
        aggregating columns have the flag, and those that are left out as well.
        """
        node, table = self.dynamic(path)
        reader = ItemReader(table.schema, lambda names: table.reader(names, path))
        with self._transactions.within(tx, atomicity) as transaction, _at_commit(transaction):
            with _preparing(path):
                _require_sorted(path, table, [kind])
                given = reader.modifications(kind, items)
                if aggregate and table.sorted:
                    given = [_aggregating(table.schema, one) for one in given]
            self._modify(node, table, given, transaction)

    def lock_rows(
        self,
        path: str,
        keys: Sequence[bytes],
        names: Sequence[str],
        locks: Sequence[str],
        type: int,
        tx: Transaction,
    ) -> None:
        """Take locks of rows in a transaction without writing them."""
        node, table = self.sorted(path)
        known = row_locks.numbers(table.schema)
        for name in locks:
            if name not in known:
                # client/api/native/transaction.cpp, LockRows
                raise generic(f'Lock group "{name}" not found in schema', path=node.path)
        taken = {known[name]: type for name in locks}
        with _at_commit(tx):
            with _preparing(path):
                reader = table.reader(names, path)
                count = table.schema.key_count
                found = {key_of(reader.key_only(key), count): taken for key in keys}
            tx.buffer(node, table).lock(found)

    def _modify(
        self,
        node: Node,
        table: Table,
        modifications: Sequence[Modification],
        tx: Transaction,
        whole: ByTablet | None = None,
    ) -> None:
        """Modify a table by rows that are written whole, and after them by the others."""
        whole = whole or {}
        if not table.sorted:
            self._append(node, table, whole, modifications, tx)
            return
        buffered = tx.buffer(node, table)
        with _preparing(node.path):
            changed = changes(buffered, whole.get(None, ()), modifications)
        buffered.changed |= changed

    def _append(
        self,
        node: Node,
        table: Table,
        whole: ByTablet,
        modifications: Sequence[Modification],
        tx: Transaction,
    ) -> None:
        # One tablet is drawn per request, not per row (api/native/transaction.cpp): that is why a
        # large transaction fills its tablets like balls thrown into bins.
        try:
            added = self._distributed(node, table, whole, modifications)
        except YtError as error:
            raise submitting(node.path, error) from None
        buffered = tx.buffer(node, table).appended
        for index, new in added.items():
            buffered.setdefault(index, []).extend(new)

    def _distributed(
        self,
        node: Node,
        table: Table,
        whole: ByTablet,
        modifications: Sequence[Modification],
    ) -> dict[int, list[bytes]]:
        """Return the rows by the index of their tablet."""
        drawn = self._random_tablet(table, node.path)
        added: dict[int, list[bytes]] = {}
        for index, rows in whole.items():
            if rows:
                added.setdefault(drawn if index is None else index, []).extend(rows)
        for _, index, row in modifications:
            # What is appended is written whole.
            to = drawn if index is None else index
            added.setdefault(to, []).append(cast("bytes", row))
        for index in added:
            tablet = tablet_at(table, index, node.path)
            if tablet.state != MOUNTED:
                raise not_mounted(tablet, node.path)
        return added

    def _random_tablet(self, table: Table, path: str) -> int:
        mounted = [i for i, tablet in enumerate(table.tablets) if tablet.state == MOUNTED]
        if not mounted:
            raise tablet_not_mounted(f"Table {path} has no mounted tablets")
        return self._random.choice(mounted)

    def lookup(
        self,
        path: str,
        rowset: bytes,
        names: Sequence[str],
        *,
        columns: Sequence[str] | None = None,
        timestamp: int | None = None,
        keep_missing: bool = False,
    ) -> Rowset:
        """Return rows of a sorted table by a rowset of keys; None for a missing one if kept."""
        node, table = self.sorted(path)
        timestamp = timestamp or None
        self.require_retained(node, timestamp)
        wanted = _wanted(table.schema, columns)
        found = table.data.rows(self._keys(node, table, rowset, names), timestamp)
        present = [row for row in found if row is not None]
        if columns is not None:
            present = table.narrowing(wanted).of(present)
        each = iter(present)
        rows = [None if row is None else next(each) for row in found] if keep_missing else present
        described = table.schema.rowset_columns()
        return Rowset([described[index] for index in wanted], rows)

    def require_retained(self, node: Node, timestamp: int | None) -> None:
        """Raise YtError if a sorted table is read as it was too long ago."""
        retention.require_retained(node, timestamp, self._clock.now())

    def versions(
        self,
        path: str,
        rowset: bytes,
        names: Sequence[str],
        *,
        columns: Sequence[str] | None = None,
    ) -> tuple[Table, list[int], list[Sequence[Version]]]:
        """Return a sorted table, which columns are asked for, and the versions of each key."""
        node, table = self.sorted(path)
        wanted = _wanted(table.schema, columns)
        found = [table.data.versions(key) for key in self._keys(node, table, rowset, names)]
        return table, wanted, found

    def _keys(self, node: Node, table: Table, rowset: bytes, names: Sequence[str]) -> Sequence[Key]:
        """Return the keys of rows that may be read now."""
        path = node.path  # it is made of the names of all nodes above
        keys = table.reader(names, path).keys(rowset)
        if not all(tablet.state in READABLE for tablet in table.tablets):
            for key in keys:
                require_readable(table.tablets[table.tablet_of(key)], path)
        return keys

    def write(
        self,
        path: str,
        items: Iterable[Mapping[str, Any]],
        *,
        attributes: Mapping[str, Any] = static.NO_ATTRIBUTES,
        most: int = static.DEFAULT_ROW_WEIGHT,
        tx: str | None = None,
    ) -> None:
        """Write rows to a static table as the path's attributes say, each lighter than `most`."""
        _, table = self.node(path, tx)
        self.put(path, static.from_items(upload(table, attributes), items, most), tx)

    def blocks(
        self,
        path: str,
        attributes: Mapping[str, Any],
        most: int = static.DEFAULT_ROW_WEIGHT,
        tx: str | None = None,
    ) -> static.Blocks:
        """Return what takes the rows that come block by block; `write_blocks` ends the write."""
        _, table = self.node(path, tx)
        return static.Blocks(upload(table, attributes), most)

    def write_blocks(self, path: str, blocks: static.Blocks, tx: str | None = None) -> None:
        """Write all the rows at once, isolated in a master transaction."""
        self.put(path, blocks.written, tx)

    def put(self, path: str, written: static.Written, tx: str | None) -> None:
        """Write rows; transactions may append to an unsorted table side by side.

        The locks: ytlib/table_client/table_upload_options.cpp.
        """
        node, table = self.node(path, tx)
        if not written.chunks and written.rows:
            one = (len(written.rows), self._clock.timestamp())
            written = replace(written, chunks=(one,))
        if written.upload.shared:
            self._cypress.add_payload(node.path, written, tx=tx)
        else:
            self._cypress.set_payload(node.path, written.onto(table), tx=tx)

    # Tablets

    def _unlocked(self, path: str) -> tuple[Node, Table]:
        """Return a dynamic table whose tablets may be changed: its node is not locked.

        Source: server/master/table_server/table_node_proxy.cpp, LockThisImpl in Mount and others.
        """
        node, table = self.node(path)
        if not table.dynamic:
            raise generic(f"Table {path} is not dynamic")
        locks.check(node, None, Request(EXCLUSIVE))
        self.tablet_changes += 1
        return node, table

    def mount(
        self,
        path: str,
        first: int | None = None,
        last: int | None = None,
        *,
        freeze: bool = False,
    ) -> None:
        """Mount tablets first..last, both included, at once; a real cluster takes a moment."""
        node, table = self._unlocked(path)
        revision = self._store.next_revision
        tablets.mount(
            table,
            node.path,
            first,
            last,
            freeze=freeze,
            next_revision=revision,
            now=self._clock.now(),
        )

    def unmount(self, path: str, first: int | None = None, last: int | None = None) -> None:
        node, table = self._unlocked(path)
        tablets.unmount(table, node.path, first, last)

    def freeze(self, path: str, first: int | None = None, last: int | None = None) -> None:
        node, table = self._unlocked(path)
        tablets.freeze(table, node.path, first, last, self._clock.now())

    def unfreeze(self, path: str, first: int | None = None, last: int | None = None) -> None:
        node, table = self._unlocked(path)
        tablets.unfreeze(table, node.path, first, last)

    def remount(self, path: str, first: int | None = None, last: int | None = None) -> None:
        """Check the request; settings take effect at once here, so nothing is left to do."""
        node, table = self._unlocked(path)
        tablets.tablet_range(table, node.path, first, last)

    def reshard(
        self,
        path: str,
        *,
        tablet_count: int | None = None,
        pivot_keys: Sequence[Sequence[Any]] | None = None,
        first: int | None = None,
        last: int | None = None,
        trimmed_row_counts: Sequence[int] | None = None,
    ) -> None:
        """Cut unmounted tablets first..last, both included, anew.

        In an ordered table, added tablets are empty, and the rows of removed ones go to the end of
        the last that stays, where they get new row indexes (documentation, "ordered tables").
        """
        node, table = self._unlocked(path)
        tablets.reshard(table, node.path, first, last, tablet_count, pivot_keys, trimmed_row_counts)

    def alter(self, path: str, *, schema: Any = None, dynamic: bool | None = None) -> None:
        """Change the schema of an unmounted table, or make it dynamic or static."""
        node, table = self.node(path)
        locks.check(node, None, Request(EXCLUSIVE))
        if dynamic is not None:
            tablets.require_unmounted(table, "Cannot switch mode")
        if schema is not None:
            tablets.require_unmounted(table, "Cannot change table schema")
            given = TableSchema.from_yson(schema)
            becomes_dynamic = table.dynamic if dynamic is None else dynamic
            alter.set_schema(table, given.with_unique_keys() if becomes_dynamic else given)
        if dynamic is not None:
            alter.set_dynamic(table, dynamic, self._clock.timestamp())

    def trim(self, path: str, tablet_index: int, trimmed_row_count: int) -> None:
        """Drop the rows of one tablet before an absolute index; trimmed rows never come back."""
        node, table = self.ordered(path)
        tablets.trim(table, node.path, tablet_index, trimmed_row_count)

    def cell_of(self, tablet: Tablet) -> str:
        """Return the tablet cell that serves a tablet: the first one for all; none if unmounted."""
        if tablet.state == UNMOUNTED:
            return ids.NULL
        return str(self._cypress.list("//sys/tablet_cells")[0])

    def tablet_infos(self, path: str, indexes: Sequence[int]) -> list[dict[str, Any]]:
        """Return the row counts of tablets as they are now; only mounted tablets know them."""
        node, table = self.dynamic(path)
        now = self._clock.last_timestamp
        return [tablets.info(table, node.path, index, now) for index in indexes]
