"""An archive whose batches stage pieces without Spark, and what its readers see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.support.static_outputs import static
from ytstream import Column
from ytstream.cluster.client import connect
from ytstream.job import REJECTED, JobContext
from ytstream.ledger import archive_rows, ledger_rows
from ytstream.ledger.ledger_rows import BatchRow, Head
from ytstream.recovery.epoch import Epoch
from ytstream.schema.columns import REJECTED_COLUMNS
from ytstream.schema.periods import Archive, Piece, Staged, group_of
from ytstream.schema.table_schema import table_schema
from ytstream.sealing import archive_tables, completeness
from ytstream.sealing.archive_tables import PERIOD_SECONDS, ArchiveTables, piece_name

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ME = "this process"
HOUR = 3_600
DAY = 1_790_000_000 // 86_400 * 86_400
"""A midnight, long before the cluster's clock."""
COLUMNS = [Column("n", "int64", required=True), Column("date_time", "timestamp", required=True)]


class Driver:
    """A driver whose batches stage pieces without Spark."""

    def __init__(self, context: JobContext, day: int = DAY) -> None:
        self.context, self.settings, self.day = context, context.settings, day
        self.client: Any = context.client
        self.number = 0
        self.clock = 0.0
        self.sent: list[int] = []
        """All rows that batches have written: their numbers."""
        self.epoch = 0
        self.complete: float = 0
        self._first: str | None = None
        """A copy of the first piece."""
        self.start()

    def start(self) -> None:
        """Raise the epoch, and begin with what the ledger says."""
        self.epoch += 1
        self.batch_number = -1
        self._head()
        sealing = replace(self.context, client=connect(self.settings, patient=False))
        self.tables = ArchiveTables(sealing, Epoch(self.epoch, ME), self.commit)
        self.tables.settle()

    def _head(self) -> None:
        head = Head(self.epoch, ME, self.epoch, self.batch_number, self.number)
        self.client.insert_rows(self.settings.ledger, [ledger_rows.head_row(head)])

    def commit(self, rows: Sequence[Mapping[str, Any]], keys: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self.client.insert_rows(self.settings.ledger, [*rows])
        if keys:
            self.client.delete_rows(self.settings.ledger, [*keys])

    def batch(self, *seconds: int, happens: bool = True, copied: bool = False) -> None:
        """Run a batch with a row of each of these times, in seconds behind the day's beginning.

        ``copied``: each piece is a copy of the first one, which takes a tenth of the requests.
        """
        state = self.tables.begin(self.batch_number + 1)["output"]
        by_begin: dict[int, list[int]] = {}
        archive = self.context.job.archives["output"]
        for second in seconds:
            by_begin.setdefault(archive.begin(self.day + second), []).append(second)
        write = self._copy if copied else self._piece
        pieces = [write(state, begin, found) for begin, found in by_begin.items()]
        if not happens:
            return
        self.batch_number += 1
        self.number += 1
        self.sent += seconds
        done = BatchRow({}, {"output": len(seconds)}, NOW, NOW, pieces=pieces)
        head = Head(self.epoch, ME, self.epoch, self.batch_number, self.number)
        rows = archive_rows.piece_rows(done, self.number, self.epoch, self.batch_number)
        batch = ledger_rows.batch_row(head, done)
        self.client.insert_rows(self.settings.ledger, [ledger_rows.head_row(head), batch, *rows])

    def _piece(self, state: Any, begin: int, seconds: Sequence[int]) -> Staged:
        archive = self.context.job.archives["output"]
        group = group_of(begin, archive.seconds, state.closed, state.generation)
        folder = archive_tables.folder_of(self.context, "output", group)
        path = f"{folder}/{piece_name(self.epoch, self.batch_number + 1)}"
        columns = self.context.job.output_columns["output"]
        schema = table_schema(columns).to_yson_type()
        attributes = {"schema": schema, "optimize_for": "scan"}
        id_ = self.client.create("table", path, recursive=True, attributes=attributes)
        more = {column.name: 0 for column in columns[2:]}
        rows = [{"n": s, "date_time": (self.day + s) * 1_000_000, **more} for s in seconds]
        self.client.write_table(path, rows)
        return Staged("output", group, Piece(path, str(id_), len(rows), 100))

    def _copy(self, state: Any, begin: int, seconds: Sequence[int]) -> Staged:
        if self._first is None:
            one = self._piece(state, begin, seconds)
            self._first = f"{self.settings.ledger}-first"
            self.client.copy(one.piece.path, self._first)
            return one
        archive = self.context.job.archives["output"]
        group = group_of(begin, archive.seconds, state.closed, state.generation)
        folder = archive_tables.folder_of(self.context, "output", group)
        path = f"{folder}/{piece_name(self.epoch, self.batch_number + 1)}"
        self.client.copy(self._first, path, recursive=True)
        id_ = self.client.get(f"{path}/@id")  # the client returns the answer as it came
        return Staged("output", group, Piece(path, str(id_), len(seconds), 100))

    def seal(self, until: float) -> list[str]:
        """Look again, when all rows written before then are in batches."""
        self.complete = self.day + until
        self.clock += PERIOD_SECONDS
        self.tables.tick(self.clock)
        return self.names()

    def names(self) -> list[str]:
        found = sorted(map(str, self.client.list(self.settings.output)))
        return [name.partition("T")[2] for name in found]

    def rows(self) -> list[int]:
        return [
            int(row["n"])
            for name in sorted(map(str, self.client.list(self.settings.output)))
            for row in self.client.read_table(f"{self.settings.output}/{name}")
        ]

    def announced(self) -> str:
        path = f"{self.settings.output}/@{completeness.COMPLETE_UNTIL}"
        return str(self.client.get(path)).partition("T")[2] if self.client.exists(path) else ""

    def staged(self) -> list[str]:
        root = f"{self.settings.staging}/output"
        if not self.client.exists(root):
            return []
        return [
            f"{folder}/{name}"
            for folder in self.client.list(root)
            for name in self.client.list(f"{root}/{folder}")
        ]

    def tables_of_the_ledger(self) -> list[archive_rows.TableRow]:
        query = archive_rows.tables_query(self.settings.ledger, "output")
        return [*map(archive_rows.table_of, self.client.select_rows(query))]


def declared(context: JobContext, archive: Archive, columns: Sequence[Column]) -> JobContext:
    """Make the first output of a job an archive."""
    job = static(context.job, "output")
    root = context.settings.ledger.rpartition("/")[0]
    outputs = {"output": columns, REJECTED: REJECTED_COLUMNS}
    job = replace(job, outputs=outputs, static={"output": archive})
    paths = {"output": f"{root}/tables", REJECTED: f"{root}/rejected"}
    return replace(context, job=job, settings=replace(context.settings, outputs=paths))
