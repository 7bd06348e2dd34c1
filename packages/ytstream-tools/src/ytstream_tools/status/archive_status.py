"""The archives of a job: which period is open, what is staged for it, and what was sealed last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from yt.common import YtError

from ytstream.job import JobContext
from ytstream.ledger import archive_rows, ledger_rows
from ytstream.ledger.archive_rows import SEALED
from ytstream.schema.periods import grouped, moment, named
from ytstream.text_table import counted, duration


@dataclass(frozen=True)
class ArchiveStatus:
    """One archive, read at one time."""

    output: str
    open: str
    """The oldest period that has rows and no table; empty without one."""
    rows: int
    """Of all periods, pieces that are in no table yet."""
    bytes: int
    pieces: int
    tables: int
    """Tables that these pieces become."""
    overdue_seconds: float
    """Since when the oldest of them could be complete, in seconds; 0: none could."""
    complete_until: str
    """Up to when readers know that all tables are there; empty: not told yet."""
    last: str
    """The newest table, its rows, and when it was sealed."""
    last_rows: int
    last_sealed: datetime | None

    @property
    def text(self) -> str:
        """The archive in one line."""
        last = f"sealed last: {self.last}, {counted(self.last_rows, 'row')}"
        staged = f"{counted(self.rows, 'row')} in {counted(self.pieces, 'piece')} staged"
        parts = [
            f"open: {self.open}" if self.open else "no period is open",
            f"{staged} ({self.bytes / 1024**2:.1f} MiB)",
            last if self.last else "no table is sealed yet",
        ]
        if self.overdue_seconds:
            waits = counted(self.tables, "table")
            parts.append(f"{waits} waiting, the oldest for {duration(self.overdue_seconds)}")
        return f"archive {self.output}: {'; '.join(parts)}"


def read(context: JobContext, now: datetime) -> list[ArchiveStatus]:
    """Return the job's archives; those that this user may not read are missing."""
    return [*_each(context, now)]


def _each(context: JobContext, now: datetime) -> Iterator[ArchiveStatus]:
    for output in context.job.archives:
        with suppress(YtError):
            yield _one(context, output, now)


def _one(context: JobContext, output: str, now: datetime) -> ArchiveStatus:
    client, ledger = context.client, context.settings.ledger
    archive = context.job.archives[output]
    state, _ = archive_rows.state_of(client.select_rows(archive_rows.archive_query(ledger, output)))
    rows = client.select_rows(archive_rows.pieces_query(ledger, output))
    staged = [*map(archive_rows.piece_of, rows)]
    groups = grouped(staged)
    newest = client.select_rows(archive_rows.tables_query(ledger, output, limit=10))
    tables = [table for table in map(archive_rows.table_of, newest) if table.step == SEALED]
    last = tables[0] if tables else None
    sealed_at = last.at if last is not None else None
    due = min((group.due for group in groups), default=None)
    late = 0.0 if due is None else now.timestamp() - due - archive.lateness_seconds
    return ArchiveStatus(
        output=output,
        open=named(min(group.begin for group in groups)) if groups else "",
        rows=sum(one.piece.rows for one in staged),
        bytes=sum(one.piece.bytes for one in staged),
        pieces=len(staged),
        tables=len(groups),
        overdue_seconds=max(0.0, late),
        complete_until=f"{moment(state.announced):%Y-%m-%dT%H:%M:%SZ}" if state.announced else "",
        last=last.name if last is not None else "",
        last_rows=last.rows if last is not None else 0,
        last_sealed=ledger_rows.time_of(sealed_at) if sealed_at is not None else None,
    )
