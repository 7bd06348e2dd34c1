"""The tables of an archive: made of the pieces that the ledger names, once a period is complete.

A ledger's row and a table are two commits, so they are made in this order:

1. A row of the ledger names the table, and fixes the list of its pieces.
2. One master transaction creates the table in its folder, puts the pieces together in it, and
   removes them. A reader finds the whole table, or none. The transaction depends on the job's lock:
   an older driver that comes back cannot commit it.
3. The row says that the table is there, and the rows of the pieces go.

A start repeats step 2 from the list. The table's own attributes say whether it was done: the reply
to a commit may be lost.

The table is created where it stays, with the time of its removal: a move would drop that time, and
readers would renew a timeout (YTsaurus documentation, "Cypress: TTL").
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from yt.common import YtError

from ..cluster.client import Client, concatenate, facts, first_line
from ..cluster.timestamps import unix_seconds
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger import archive_rows
from ..ledger.archive_rows import SEALING, ArchiveState, TableRow
from ..ledger.ledger_rows import Head
from ..ledger.positions import read_head
from ..log import say, warn
from ..recovery.epoch import Epoch
from ..schema.periods import Archive, Group, Staged, grouped, named
from ..schema.table_schema import table_schema
from ..staging import archive_pieces
from ..staging.staged_tables import NameTakenError
from . import completeness
from .archive_rewrites import ArchiveRewrites
from .completeness import COMPLETE_UNTIL

SEALED = "ytstream_sealed"
"""The attribute of a table: what it was made of."""
PERIOD_SECONDS = 15.0
"""How often to look whether a period is complete."""
AT_ONCE = 20
"""Tables made per call; signals are checked between calls."""
_KEPT = ("schema", "optimize_for", "compression_codec", "erasure_codec", "primary_medium")
"""What a table has of its pieces: concatenation keeps their chunks as they are."""
_OF_FOLDER = ("compression_codec", "erasure_codec", "primary_medium", "account")
"""What pieces take from the folder of the tables."""
Commit = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], None]
"""Writes rows of the ledger and deletes keys, unless another process has raised the epoch."""
Lock = Callable[[], str]
"""The transaction of the job's lock; raises JobError where this process does not hold it."""


def piece_name(epoch: int, batch: int) -> str:
    """Return the name of what a batch writes; no batch runs twice in one epoch."""
    return f"{epoch:08}-{batch:010}"


def folder_of(context: JobContext, output: str, group: Group) -> str:
    """Return the folder of the pieces of a table."""
    return f"{context.settings.staging}/{output}/{group.folder}"


def attributes_of(context: JobContext, client: Client, output: str) -> dict[str, Any]:
    """Return the attributes with which pieces are made: they have to be those of the tables."""
    columns = context.job.output_columns[output]
    found = facts(client, context.settings.outputs[output], _OF_FOLDER) or {}
    return {
        "schema": table_schema(columns).to_yson_type(),
        "optimize_for": "scan",
        **{name: found[name] for name in _OF_FOLDER if name in found},
    }


def shape_of(context: JobContext, output: str) -> str:
    """Return what makes rows of an archive unfit for one table, as text."""
    archive = context.job.archives[output]
    columns = [
        f"{c.name}:{c.type}{'' if c.required else '?'}" for c in context.job.output_columns[output]
    ]
    return f"{archive.seconds} {archive.by} {' '.join(columns)}"


@dataclass
class ArchiveTables:
    """The archives of one query. Batches ask what is closed; the supervisor's thread seals."""

    context: JobContext
    """With a client of its own, which tries once: a repeated concatenation may not be the same."""
    epoch: Epoch
    commit: Commit
    lock: Lock | None = None
    """None: without a lock, in tests."""
    states: dict[str, ArchiveState] = field(default_factory=dict)
    rewrites: ArchiveRewrites = field(init=False)
    """What follows when a table is sealed."""
    _writing: tuple[int, Mapping[str, int]] | None = None
    """The batch that is under way, and what was closed when it began."""
    _gate: threading.Lock = field(default_factory=threading.Lock)
    """Held while one thread begins a batch, and the other closes a period."""
    _unfinished: dict[str, list[TableRow]] = field(default_factory=dict)
    """Tables whose list is fixed, and that may not be there yet."""
    _looked: set[str] = field(default_factory=set)
    """Archives of which nothing was left to make."""
    _next: float = 0.0
    _said: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Begin without tables that are left to rewrite."""
        self.rewrites = ArchiveRewrites(self.context, SEALED)

    def begin(self, batch: int) -> Mapping[str, ArchiveState]:
        """Return what is closed, for all rows of a batch that begins. The one before is over."""
        with self._gate:
            states = dict(self.states)
            self._writing = batch, {name: state.closed for name, state in states.items()}
        return states

    def settle(self) -> None:
        """Before the query: remove the pieces whose batches have not happened.

        Pieces of other columns or periods become tables of their own.
        """
        for output in self.context.job.archives:
            state, _ = self._read(output)
            if (shape := shape_of(self.context, output)) != state.shape:
                generation = state.generation + (1 if state.shape else 0)
                state = replace(state, generation=generation, shape=shape)
                self.commit([archive_rows.state_row(output, state)], [])
            self.states[output] = state
            self._unfinished[output] = [*archive_rows.unfinished(self._tables(output))]
            for line in archive_pieces.remove_orphans(self.context, output, self.epoch.number):
                warn(line)
        self.rewrites.settle()

    def staged(self, output: str) -> list[Staged]:
        """Return the pieces that wait, as the ledger names them."""
        return archive_pieces.staged(self.context, output)

    def _tables(self, output: str, begin: int | None = None) -> list[TableRow]:
        """Return the tables of an archive, or of one of its periods."""
        query = archive_rows.tables_query(self.context.settings.ledger, output, begin)
        return [*map(archive_rows.table_of, self.context.client.select_rows(query))]

    def tick(self, now: float) -> None:
        """Seal what is complete, unless the last look was a moment ago.

        A failure is logged once, and tried again.
        """
        if now < self._next or not self.states:
            return
        self._next = now + PERIOD_SECONDS
        problems = []
        self.rewrites.tick()
        for output in self.context.job.archives:
            try:
                self._seal(output)
            except (YtError, OSError) as error:
                problems.append(f"{output}: no table can be sealed now: {first_line(error)}")
            except JobError as error:
                problems.append(f"{output}: {error}")
        lines = frozenset(problems)
        for line in sorted(lines - self._said):
            warn(f"archive {line}; trying again")
        if self._said and not lines:
            say("tables of archives are sealed again")
        self._said = lines

    def _seal(self, output: str) -> None:
        """Close what is complete; then make the tables of it, in order, and tell readers."""
        client, settings = self.context.client, self.context.settings
        archive = self.context.job.archives[output]
        head = read_head(settings.ledger, client.select_rows)
        if head is None or head.folder != self.epoch.number:
            return  # a newer driver seals them
        self._hear_end(head)
        self._close(output, archive)
        with self._gate:
            state = self.states[output]
            closed = self._writing[1].get(output, 0) if self._writing else state.closed
        if output in self._looked and state.closed == state.announced:
            return  # no table is due
        while unfinished := self._unfinished.get(output):
            self._publish(unfinished[0])
            del unfinished[0]
        waiting = grouped(self.staged(output))
        due = [group for group in waiting if group.is_due(closed, state.generation)]
        for group in due[:AT_ONCE]:
            table = self._listed(output, group, waiting[group])
            unfinished = self._unfinished.setdefault(output, [])
            unfinished.append(table)  # its list is fixed: another look may find more pieces
            self._publish(table)
            unfinished.remove(table)
        if len(due) > AT_ONCE:
            self._next = 0.0
            return
        self._looked.add(output)
        if closed == state.closed > state.announced:
            self._announce(output, state)

    def _hear_end(self, head: Head) -> None:
        if self._writing is not None and head.batch >= self._writing[0]:
            self._writing = None

    def _close(self, output: str, archive: Archive) -> None:
        """Close the periods that are complete, and those that a person asks for."""
        written, asked = self._read(output)
        state = self.states[output]
        until = max(asked, state.closed)
        second = unix_seconds(int(self.context.client.generate_timestamp()))
        if archive.closed_by(second) > until:
            with suppress(JobError):  # `why` and `status` say what holds it up
                until = max(until, archive.closed_by(completeness.bound(self.context, archive)))
        if until > state.closed:
            # In this order: a batch that begins now must not add to a table that is made next.
            with self._gate:
                self.states[output] = state = replace(state, closed=until)
        keys = [archive_rows.request_key(output)] if asked else []
        if keys or state != written:
            self.commit([archive_rows.state_row(output, state)], keys)

    def _read(self, output: str) -> tuple[ArchiveState, int]:
        query = archive_rows.archive_query(self.context.settings.ledger, output)
        return archive_rows.state_of(self.context.client.select_rows(query))

    def _listed(self, output: str, group: Group, pieces: Sequence[Staged]) -> TableRow:
        """Fix the list of the pieces of a table."""
        part = 1 + max((table.part for table in self._tables(output, group.begin)), default=0)
        table = TableRow(
            output=output, group=group, part=part, step=SEALING,
            rows=sum(one.piece.rows for one in pieces),
            bytes=sum(one.piece.bytes for one in pieces),
            pieces=tuple((one.piece.path, one.piece.id) for one in pieces),
        )  # fmt: skip
        self.commit([archive_rows.table_row(table)], [])
        return table

    def _publish(self, table: TableRow) -> None:
        """Make the table of its list, unless it is there; then write that it is."""
        if not self._is_there(table):
            self._make(table)
        say(f"sealed {self._target(table)}: {table.rows} rows")
        known = {path for path, _ in table.pieces}
        pieces = [one for one in self.staged(table.output) if one.piece.path in known]
        row = archive_rows.table_row(archive_rows.sealed(table))
        self.commit([row], archive_rows.piece_keys(pieces))
        self.rewrites.add(table.output, self._target(table))

    def _target(self, table: TableRow) -> str:
        return f"{self.context.settings.outputs[table.output]}/{table.name}"

    def _is_there(self, table: TableRow) -> bool:
        target = self._target(table)
        found = facts(self.context.client, target, ("type", SEALED))
        if found is None:
            return False
        mark = found.get(SEALED)
        ids = [str(id_) for id_ in mark.get("pieces", ())] if isinstance(mark, Mapping) else []
        if ids == [id_ for _, id_ in table.pieces]:
            return True
        raise NameTakenError(
            f"{target} exists already, and this job did not write it",
            f"move it away: the table of {table.name} takes its place",
        )

    def _make(self, table: TableRow) -> None:
        client, target = self.context.client, self._target(table)
        folder = folder_of(self.context, table.output, table.group)
        ids = [id_ for _, id_ in table.pieces]
        found = facts(client, f"#{ids[0]}", _KEPT)
        if found is None and not client.exists(folder):  # they go with the table's commit
            warn(
                f"the pieces of {target} are gone, and it is not there: unless it was removed or "
                f"has expired since, its {table.rows} rows are lost; `rewind` reads them again"
            )
            return
        if found is None:
            raise JobError(
                f"a piece of {target} is gone: {table.pieces[0][0]}",
                "restore it, if it was removed by hand; its row in the ledger names it",
                code=ErrorCode.NOT_PUBLISHED,
            )
        lock = [self.lock()] if self.lock is not None else None
        title = {"title": f"ytstream: seal {target}"}
        with _transaction(client, title, lock):
            client.create("table", target, attributes={**found, **self._marks(table, ids)})
            client.lock(folder, mode="exclusive")
            names = {f"{folder}/{name}" for name in client.list(folder)}
            concatenate(client, [f"#{id_}" for id_ in ids], target)
            count = int(client.get(f"{target}/@row_count"))
            if count != table.rows:
                raise JobError(
                    f"the pieces of {target} have {count} rows, and the ledger says {table.rows}",
                    f"look at {folder}: something else writes there",
                    code=ErrorCode.NOT_PUBLISHED,
                )
            for path in [folder] if names <= {path for path, _ in table.pieces} else names:
                if path == folder or path in {listed for listed, _ in table.pieces}:
                    client.remove(path, recursive=True)

    def _marks(self, table: TableRow, ids: Sequence[str]) -> dict[str, Any]:
        job, settings = self.context.job, self.context.settings
        expires = job.archives[table.output].expires(table.group.begin + table.group.seconds)
        kept = {} if expires is None else {"expiration_time": f"{expires:%Y-%m-%dT%H:%M:%SZ}"}
        return {
            **kept,
            SEALED: {
                "job": job.name,
                "ledger": settings.ledger,
                "output": table.output,
                "period": named(table.group.begin),
                "seconds": table.group.seconds,
                "rows": table.rows,
                "pieces": [*ids],
            },
        }

    def _announce(self, output: str, state: ArchiveState) -> None:
        """Tell readers up to when all tables are there."""
        path = self.context.settings.outputs[output]
        self.context.client.set(f"{path}/@{COMPLETE_UNTIL}", named(state.closed))
        state = replace(state, announced=state.closed)
        self.commit([archive_rows.state_row(output, state)], [])
        self.states[output] = replace(self.states[output], announced=state.announced)


@contextmanager
def _transaction(
    client: Client, attributes: Mapping[str, str], lock: Sequence[str] | None
) -> Iterator[None]:
    """Run a transaction. One whose commit fails would hold its locks until it expires."""
    transaction = client.Transaction(
        timeout=60_000, attributes=attributes, prerequisite_transaction_ids=lock
    )
    try:
        with transaction:
            yield
    except (YtError, OSError):
        with suppress(YtError, OSError):
            client.abort_transaction(transaction.transaction_id)
        raise
