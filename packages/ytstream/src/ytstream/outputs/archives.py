"""Archives: what a micro-batch writes for the tables of periods.

All pieces of a batch are made under one master transaction, which commits before the batch's row of
the ledger names them. The next start removes those of a batch that has not happened. The thread of
the supervisor makes tables of them: sealing/archive_tables.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..cluster.client import Client, concatenate
from ..cluster.timestamps import unix_seconds
from ..connector.choose_connector import write_pieces
from ..connector.java import Java
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger.archive_rows import ArchiveState
from ..schema.periods import REJECT, Archive, Piece, Staged, group_of
from ..sealing import archive_tables
from ..sealing.archive_tables import ArchiveTables
from ..spark.source import ARRIVED
from .output_frames import Frames

REASONS: Mapping[str, str] = {
    "no-time": "archive: no time",
    "too-old": "archive: older than keep",
    "too-new": "archive: ahead of the clock",
    "late": "archive: late",
}
"""Pieces.java's names of reasons -> what `rejected` says."""
HANDED_BYTES = 4 << 20
"""What the tasks of a batch hand to the driver at most, each an equal part. It writes one table of
these rows for a period: each table that a task writes has a chunk of its own, and the tables of
periods keep these chunks."""
_TOO_MANY = "ytstream: too many periods in a batch"
"""What a task says of more periods than `open_periods`."""


@dataclass(frozen=True)
class Skipped:
    """Which rows of an archive a batch has not written."""

    archive: Archive
    bounds: tuple[int, int, int]
    """When the oldest and the newest period begins, and the end of the last one that takes no row.
    """
    rows: Mapping[str, int]
    """What `rejected` says -> rows."""


@dataclass
class Archives:
    """What the batches of one query write for archives."""

    tables: ArchiveTables
    client: Client
    """With a connection of its own: a client keeps its transaction for all threads."""
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    pieces: Sequence[Staged] = ()
    """Of the last batch."""
    skipped: Mapping[str, Skipped] = field(default_factory=dict)

    def write(
        self, context: JobContext, frames: Frames, epoch: int, batch: int, java: Java
    ) -> dict[str, int]:
        """Write the pieces of a batch; return the rows of each archive.

        Raises JobError for rows of more periods than one batch may have.
        """
        self.pieces, self.skipped = (), {}
        job = context.job
        if not (outputs := [name for name in job.outputs if name in job.archives]):
            return {}
        states = self.tables.begin(batch)
        second = unix_seconds(int(self.client.generate_timestamp()))
        title = {"title": f"ytstream: pieces of batch {epoch}-{batch}"}
        pieces, skipped, written = [], {}, {}
        with self.client.Transaction(attributes=title) as transaction:
            for output in outputs:
                archive = job.archives[output]
                refused = states[output].closed if archive.late == REJECT else 0
                bounds = archive.oldest(second), archive.newest(second), refused
                made = _Making(self, context, output, archive, states[output], java)
                name = archive_tables.piece_name(epoch, batch)
                own, rows = made.of(frames, str(transaction.transaction_id), bounds, name)
                pieces += own
                skipped[output] = Skipped(archive, bounds, rows)
                written[output] = sum(one.piece.rows for one in own)
        self.pieces, self.skipped = pieces, {n: one for n, one in skipped.items() if one.rows}
        return written

    def rejected(self) -> dict[str, int]:
        """Return what `rejected` says -> rows that the last batch has not written."""
        total: Counter[str] = Counter()
        for one in self.skipped.values():
            total.update(one.rows)
        return dict(total)


@dataclass(frozen=True)
class _Making:
    """Makes the pieces of one archive in one batch."""

    archives: Archives
    context: JobContext
    output: str
    archive: Archive
    state: ArchiveState
    java: Java

    def of(
        self, frames: Frames, transaction: str, bounds: tuple[int, int, int], name: str
    ) -> tuple[list[Staged], dict[str, int]]:
        """Return the pieces, and the rows that were skipped by reason."""
        client, folder = self.archives.client, f"{self._root}/parts-{name}"
        client.create("map_node", folder, recursive=True)
        lines = self._written(frames, transaction, bounds, folder).splitlines()
        skipped = Counter[str]()
        parts: dict[int, list[tuple[str, int, int]]] = {}
        for line in lines:
            what, key, *more = line.split(" ")
            if what == "skip":
                skipped[REASONS[key]] += int(more[0])
            else:
                part = f"{folder}/{more[0]}", int(more[1]), int(more[2])
                parts.setdefault(int(key), []).append(part)
        self._verify_number(len(parts))
        pieces = [self._piece(begin, found, name) for begin, found in sorted(parts.items())]
        client.remove(folder, recursive=True)
        return pieces, dict(skipped)

    @property
    def _root(self) -> str:
        return f"{self.context.settings.staging}/{self.output}"

    def _attributes(self) -> dict[str, Any]:
        known = self.archives.attributes
        if self.output not in known:
            client = self.archives.client
            known[self.output] = archive_tables.attributes_of(self.context, client, self.output)
        return known[self.output]

    def _written(
        self, frames: Frames, transaction: str, bounds: tuple[int, int, int], folder: str
    ) -> str:
        most = self.context.settings.open_periods
        by, seconds = self.archive.by or ARRIVED, self.archive.seconds
        attributes, rows = self._attributes(), frames[self.output]
        try:
            return write_pieces(
                rows, attributes, folder, transaction, by, seconds, bounds, most, HANDED_BYTES,
                self.java,
            )  # fmt: skip
        except Exception as error:
            if _TOO_MANY not in str(error):
                raise
            self._verify_number(most + 1)
            raise

    def _verify_number(self, periods: int) -> None:
        most = self.context.settings.open_periods
        if periods > most:
            raise JobError(
                f"rows of one micro-batch are of more than {most} periods of {self.output!r}",
                "read fewer rows at once (max_rows_per_partition), or set open_periods = "
                f"{most * 2} in the configuration: each period takes a table in each batch",
                code=ErrorCode.TABLES,
            )

    def _piece(self, begin: int, parts: Sequence[tuple[str, int, int]], name: str) -> Staged:
        """Put the parts that tasks have written together."""
        state, client = self.state, self.archives.client
        group = group_of(begin, self.archive.seconds, state.closed, state.generation)
        path = f"{archive_tables.folder_of(self.context, self.output, group)}/{name}"
        made = client.create("table", path, recursive=True, attributes=self._attributes())
        concatenate(client, [part for part, *_ in parts], path)
        rows, size = sum(part[1] for part in parts), sum(part[2] for part in parts)
        return Staged(self.output, group, Piece(path, str(made), rows, size))
