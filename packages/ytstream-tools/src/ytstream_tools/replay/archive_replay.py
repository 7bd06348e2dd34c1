"""Rejected rows that go into archives: pieces, as a micro-batch of the stopped job writes them.

The pieces are there before the transaction of the replay names them in the ledger. It also writes
the ledger's head once more, unchanged. So it fails if the job starts meanwhile: that start removes
pieces that the ledger does not name yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import functions as F

from ytstream.cluster.client import connect
from ytstream.cluster.timestamps import unix_seconds
from ytstream.connector.java import Java
from ytstream.connector.tablet_transactions import Transaction
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import Job, JobContext
from ytstream.ledger import archive_rows, ledger_rows
from ytstream.ledger.archive_rows import ArchiveState
from ytstream.ledger.ledger_rows import BatchRow
from ytstream.outputs.archives import REASONS, Archives, Skipped
from ytstream.outputs.output_frames import Frames
from ytstream.recovery.epoch import Epoch
from ytstream.rejected.outside_periods import reason_of
from ytstream.schema.periods import REJECT
from ytstream.sealing.archive_tables import ArchiveTables, shape_of


def verify_job(job: Job) -> None:
    """Raise JobError for archives into which nobody can put a row later."""
    if job.arrivals:
        raise JobError(
            f"the periods of {', '.join(job.arrivals)} are by arrival, and `rejected` does not say "
            "when a row was written to its queue",
            "put the rows that transform.py accepts now into a queue of the job again",
            code=ErrorCode.NOT_FOR_THIS_JOB,
        )


def is_of_an_archive(row: Mapping[str, Any]) -> bool:
    """Return whether an archive had no period for the row: the other outputs may have it."""
    return row["reason"] in REASONS.values()


@dataclass(frozen=True)
class ReplayedArchives:
    """The archives of a stopped job."""

    context: JobContext
    states: Mapping[str, ArchiveState]

    def outside(self, frames: Frames, tasks: int) -> set[int]:
        """Return the tasks whose rows an archive has no period for. Each has one row of a queue."""
        found, task = set[int](), F.spark_partition_id().alias("task")
        for output, skipped in self._skipped().items():
            frame = frames[output]
            if frame.rdd.getNumPartitions() != tasks:
                raise JobError(
                    f"the job cannot tell which rejected rows belong to an open period of "
                    f"{output!r}: transform() or outputs() moves rows between tasks",
                    "put the rows that transform.py accepts now into a queue of the job again",
                    code=ErrorCode.NOT_FOR_THIS_JOB,
                )
            reason = reason_of(F.col(f"`{skipped.archive.by}`"), skipped).alias("reason")
            chosen = frame.select(reason, task).filter("reason is not null")
            found |= {row.task for row in chosen.select("task").distinct().collect()}
        return found

    def _skipped(self) -> Mapping[str, Skipped]:
        second = unix_seconds(int(self.context.client.generate_timestamp()))
        made = {}
        for output, archive in self.context.job.archives.items():
            refused = self.states[output].announced if archive.late == REJECT else 0
            bounds = archive.oldest(second), archive.newest(second), refused
            made[output] = Skipped(archive, bounds, {})
        return made

    def write(self, frames: Frames, transaction: Transaction, java: Java) -> dict[str, int]:
        """Write the rows of archives, and name their pieces in the transaction."""
        path, now = self.context.settings.ledger, datetime.now(UTC)
        (head,) = transaction.select(f'* from [{path}] where kind = "head"')
        number, epoch = ledger_rows.microseconds(now), int(head["epoch"])
        tables = ArchiveTables(self.context, Epoch(), _nothing, states=dict(self.states))
        archives = Archives(tables, connect(self.context.settings))
        written = archives.write(self.context, frames, epoch, number, java)
        if archives.skipped:
            raise JobError(
                "a period has ended while its rows were replayed",
                "repeat the command; nothing was changed",
                code=ErrorCode.TABLES,
            )
        done = BatchRow({}, {}, now, now, pieces=archives.pieces)
        rows = archive_rows.piece_rows(done, number, epoch, -1)
        same = {name: value for name, value in head.items() if value is not None}
        transaction.modify(path, ledger_rows.COLUMNS, [same, *rows])
        return written


def read(context: JobContext) -> ReplayedArchives:
    """Return the archives as the ledger has them. Raises JobError where the next start moves on."""
    client, ledger, states = context.client, context.settings.ledger, {}
    for output in context.job.archives:
        rows = client.select_rows(archive_rows.archive_query(ledger, output))
        states[output], _ = archive_rows.state_of(rows)
        if states[output].shape != shape_of(context, output):
            raise JobError(
                f"the columns or periods of {output!r} were changed since the job ran",
                "start and stop it once, then repeat this; nothing was changed",
                code=ErrorCode.TABLES,
            )
    return ReplayedArchives(context, states)


def _nothing(rows: Sequence[Mapping[str, Any]], keys: Sequence[Mapping[str, Any]]) -> None:
    """Write nothing: a replay closes no period."""
