"""The table `rejected` as a replay reads it: in chunks by key, without the rows that must stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ytstream.job import REJECTED, JobContext
from ytstream.schema.columns import key_of

from . import archive_replay
from .replay_counts import ReplayCounts
from .reread import LedgerReads, PositionStatus

CHUNK = 10_000
"""Rows of one transaction, far below the 100,000 of one tablet that it may touch."""
CHUNK_BYTES = 16 * 1024**2
"""Bytes of their JSON, which a request, the JVM and a transaction have to hold. One row may have
more: the JSON of a row has 16 MiB at most."""
_KEYS = 1_000
"""Keys that one query names."""

Select = Callable[[str], Iterable[Any]]
"""Answers a query: of the cluster, or of a transaction, which then sees later writes as conflicts.
"""
Key = tuple[Any, ...]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class RejectedTable:
    """The rejected rows of a job, by their position in the queue."""

    context: JobContext

    @property
    def path(self) -> str:
        """Where the table is."""
        return self.context.settings.outputs[REJECTED]

    @property
    def key(self) -> tuple[str, ...]:
        """The names of its key columns."""
        return key_of(self.context.job.output_columns[REJECTED])

    def key_of(self, row: Mapping[str, Any]) -> Key:
        """Return the values of a row's key."""
        return tuple(row[name] for name in self.key)

    def read(self, select: Select, last: Key, most: int | None = None) -> Rows:
        """Return the next rows after the key ``last``: as many as fit into one transaction."""
        key = ", ".join(self.key)
        after = f" where ({key}) > {_literal(last)}" if last else ""
        tail = f"order by {key} limit {CHUNK if most is None else most}"
        size, end = 0, last
        for row in select(f"{key}, length(row) as size from [{self.path}]{after} {tail}"):
            size += int(row["size"])
            if size > CHUNK_BYTES and end != last:
                break
            end = self.key_of(row)
        if end == last:
            return []
        until = f"{after} and" if last else " where"
        columns = f"{key}, reason, row, time"
        return list(
            select(f"{columns} from [{self.path}]{until} ({key}) <= {_literal(end)} {tail}")
        )

    def free(
        self, select: Select, readings: LedgerReads, found: Rows, counts: ReplayCounts
    ) -> Rows:
        """Return those of ``found`` that may be replayed; count the others."""
        taken, free = self.taken(select, found), Rows()
        for row in found:
            queue = row.get("queue_id", self.context.settings.queues[0])
            reading = readings.of(queue, row["tablet_index"], row["row_index"], int(row["time"]))
            if self.key_of(row) in taken:
                counts.held += 1
            elif archive_replay.is_of_an_archive(row):
                counts.outside += 1
            elif reading is PositionStatus.ACCEPTED:
                counts.accepted += 1
            elif reading is PositionStatus.NEXT:
                counts.coming += 1
            elif reading is PositionStatus.RENUMBERED:
                counts.renumbered += 1
            elif reading is PositionStatus.UNKNOWN:
                counts.unknown += 1
            else:
                free.append(row)
        return free

    def taken(self, select: Select, found: Rows) -> set[Key]:
        """Return the keys among those of ``found`` at which an output has a row already.

        A replay reads in its transaction: a row that the job writes there later makes its commit
        fail.
        """
        names = ", ".join(self.key)
        taken = set[Key]()
        for output, columns in self.context.job.output_columns.items():
            if output == REJECTED or key_of(columns) != self.key:
                continue
            path = self.context.settings.outputs[output]
            for start in range(0, len(found), _KEYS):
                keys = [_literal(self.key_of(row)) for row in found[start : start + _KEYS]]
                query = f"{names} from [{path}] where ({names}) in ({', '.join(keys)})"
                taken |= {self.key_of(row) for row in select(query)}
        return taken


def _literal(values: Key) -> str:
    """Return the values as a tuple of the query language."""
    shown = (f'"{value}"' if isinstance(value, str) else str(value) for value in values)
    return f"({', '.join(shown)})"
