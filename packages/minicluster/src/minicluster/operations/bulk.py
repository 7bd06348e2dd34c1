"""Operations on whole tables, merge and sort: the cluster does them itself, without jobs.

The rows are read when the operation starts, as from chunks that it has locked. They are written
when it ends, in a transaction of its own inside the user's. Sources: documentation,
user-guide/data-processing/operations/merge and sort; server/controller_agent/controllers,
sorted_controller.cpp and sort_controller.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..core.errors import FAILED_JOBS_LIMIT_EXCEEDED, YtError, generic
from ..cypress.commands import Cypress
from ..cypress.model import EXCLUSIVE, SHARED
from ..cypress.transactions import Transactions
from ..cypress.ypath import RichPath, parse_rich
from ..rows.from_wire import key_of
from ..rows.schema import TableSchema
from ..tables.commands import Tables
from ..tables.concatenate import inferred, renamed
from ..tables.ranges import read_table
from ..tables.static import Written
from ..tables.table import Table
from ..tables.upload import Upload, ordered_by, upload
from .model import MERGE, SORT, Work
from .spec import OfTables

TYPES = (MERGE, SORT)
_LIFETIME_MS = 24 * 3600 * 1000
"""Of the transaction of an operation: the user's own, if there is one, ends it before."""


class Bulk:
    """Prepares such an operation, and ends it."""

    def __init__(self, cypress: Cypress, tables: Tables, transactions: Transactions) -> None:
        self._cypress = cypress
        self._tables = tables
        self._transactions = transactions

    def prepare(self, spec: OfTables, tx: str | None) -> Work:
        """Lock the output and read the inputs. Raises YtError, and then nothing is locked."""
        own = self._transactions.start(parent=tx, timeout_ms=_LIFETIME_MS)
        try:
            return self._prepared(spec, tx, own)
        except YtError:
            self._transactions.abort(own)
            raise

    def finish(self, work: Work) -> None:
        """Write the rows. Raises YtError, and then the output is as it was."""
        try:
            self._tables.put(work.path, work.written, work.transaction)
        except YtError as error:
            self.drop(work)
            raise YtError(
                FAILED_JOBS_LIMIT_EXCEEDED, "Failed jobs limit exceeded", {}, [error]
            ) from None
        self._transactions.commit(work.transaction)

    def drop(self, work: Work) -> None:
        """Forget the rows and the lock; the transaction may be over."""
        if work.transaction in self._transactions.running:
            self._transactions.abort(work.transaction)

    def _prepared(self, spec: OfTables, tx: str | None, own: str) -> Work:
        output = parse_rich(spec.output)
        inputs = [parse_rich(path) for path in spec.inputs]
        sources = [self._tables.node(path.path, tx)[1] for path in inputs]
        _, table = self._tables.node(output.path, tx)
        columns = _columns(spec, inputs, sources)
        wanted = _upload(table, output, sources, columns)
        self._cypress.lock(output.path, SHARED if wanted.shared else EXCLUSIVE, tx=own)
        written = self._read(spec, tx, wanted, sources)
        if columns:
            written = _ordered(written, columns)
        return Work(own, output.path, written)

    def _read(
        self, spec: OfTables, tx: str | None, wanted: Upload, sources: Sequence[Table]
    ) -> Written:
        names = [column.name for column in wanted.schema.columns]
        rows: list[bytes] = []
        chunks: list[tuple[int, int]] = []
        for path, source in zip(spec.inputs, sources, strict=True):
            reading = read_table(self._tables, path, tx=tx)
            rows += renamed(reading.columns, reading.rows, wanted.schema, names)
            chunks += source.static_chunks
        kept = not spec.transforms and sum(count for count, _ in chunks) == len(rows)
        return Written(wanted, names, rows, tuple(chunks) if kept else ())


def _columns(spec: OfTables, inputs: Sequence[RichPath], sources: Sequence[Table]) -> list[str]:
    """Return the columns that order the output; none if nothing does."""
    if spec.mode != "sorted":
        return []
    if "sort_by" in spec.provided:
        return [*spec.columns]
    columns = [*spec.columns] or sources[0].schema.key_columns
    for path, source in zip(inputs, sources, strict=True):
        keys = source.schema.key_columns
        if not columns or keys[: len(columns)] != columns:
            raise generic(
                f"Input table {path.path} is sorted by columns {keys} that are not compatible "
                f"with the requested columns {columns}"
            )
    return columns


def _upload(table: Table, output: RichPath, sources: Sequence[Table], columns: list[str]) -> Upload:
    """Return what the output is afterwards: one without a schema takes that of the inputs."""
    wanted = upload(table, output.attributes)
    if wanted.schema_mode == "strong":
        keys = wanted.schema.key_columns
        if columns and columns[: len(keys)] != keys:
            raise generic(
                f"Output table {output.path} is sorted by columns {keys}, "
                f"the operation orders by {columns}"
            )
        return wanted
    found = inferred(table, sources, wanted.append)
    if not columns:
        return found
    if found.schema_mode == "weak":
        return Upload(wanted.append, ordered_by(columns), "weak")
    return replace(found, schema=_by(found.schema, columns))


def _by(schema: TableSchema, columns: list[str]) -> TableSchema:
    """Return the schema with these columns as its key."""
    keys = []
    for name in columns:
        column = schema.find(name)
        if column is None:
            raise generic(f'Column "{name}" is not found in the schema of the inputs')
        keys.append(replace(column, sort_order="ascending"))
    others = [column for column in schema.columns if column.name not in columns]
    return replace(schema, columns=(*keys, *others), unique_keys=False)


def _ordered(written: Written, columns: list[str]) -> Written:
    """Return the rows in the order of these columns; rows of one key stay as they came."""
    places = [written.names.index(name) for name in columns]
    if places == list(range(len(places))):
        return replace(written, rows=sorted(written.rows, key=lambda row: key_of(row, len(places))))

    def key(row: bytes) -> Any:
        whole = key_of(row, max(places) + 1)
        return [whole[2 * place : 2 * place + 2] for place in places]

    return replace(written, rows=sorted(written.rows, key=key))
