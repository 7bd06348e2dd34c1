"""What rows that were looked up must be, in plain Python: without a line of the runtime.

A value of a reference names its key and the version of the reference, and each version lacks other
keys. So a row says which version it was looked up in, and so do keys that are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

KEYS = range(1_000, 1_100)
LARGE, WRITTEN, SMALL = "large", "written", "small"
"""Behind a link, in three tablets; a table that is written to; behind a link, with few rows."""
REFERENCES = (LARGE, WRITTEN, SMALL)


def text(reference: str, key: int, version: int) -> str | None:
    """Return the value of a key in a version of a reference; None for a key that is missing."""
    last = {LARGE: KEYS.stop, WRITTEN: KEYS.stop - 10, SMALL: KEYS.start + 20}[reference]
    is_there = key < last and (reference == WRITTEN or (key + version) % 10)
    return f"{reference} {key} {version}" if is_there else None


@dataclass(frozen=True)
class Change:
    """A version of a reference, and when the cluster got it."""

    reference: str
    version: int
    table: str
    """The id of its table."""
    after: int
    """Timestamps of the cluster before it was begun, and once it was there."""
    by: int
    n: int = 0
    """The number of its last request in the journal."""


@dataclass(frozen=True)
class Looked:
    """What a case has left."""

    queue: Sequence[Row]
    """All rows of the queue, with tablet and index."""
    output: Sequence[Row]
    ledger: Sequence[Row]
    """The rows of the ledger about batches."""
    changes: Collection[Change]
    drops_by: str | None = None
    """The reference whose missing keys drop a row."""

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the rows, and with what the ledger says of them."""
        read, must = Counter[tuple[int, int]](), Counter[str]()
        for batch in self.ledger:
            rows = [row for row in self.queue if _is_of(row, batch)]
            read.update(map(_place, rows))
            kept = {str(row["event_id"]): int(row["auction"]) for row in rows}
            for reference in REFERENCES if rows else ():
                try:
                    kept = self._verified(reference, batch, kept)
                except (KeyError, ValueError) as error:
                    yield f"batch {batch['number']}, {reference}: {error}"
            must.update(kept.keys())
        if read != Counter(map(_place, self.queue)):
            yield f"batches of the ledger have read {read.total()} rows of {len(self.queue)}"
        found = Counter(str(row["event_id"]) for row in self.output)
        if found != must:
            yield f"lost: {[*(must - found)]}, repeated: {[*(found - must)]}"
        if wrong := [r for r in self.output if r["is_known"] != (r[WRITTEN] is not None)]:
            yield f"is_known is wrong: {wrong[:3]}"

    def _verified(self, reference: str, batch: Row, keys: Mapping[str, int]) -> dict[str, int]:
        """Return the rows of a batch that are left behind a lookup, each with its key.

        Raises ValueError unless all have one version: one that the reference had at the moment that
        the ledger names, in the table that it names.
        """
        named = batch["state"]["lookups"][reference]
        table, time = str(named["table"]), int(named["timestamp"])
        values = {str(r["event_id"]): r[reference] for r in self.output if r["event_id"] in keys}
        allowed = [*self._versions(reference, table, time)]
        wrong: dict[str, Any] = {}
        for version in allowed:
            must = {event: text(reference, key, version) for event, key in keys.items()}
            if reference == self.drops_by:
                must = {event: value for event, value in must.items() if value is not None}
            wrong = {e: (value, must.get(e)) for e, value in values.items() if value != must.get(e)}
            if not wrong:
                return {event: keys[event] for event in must}
        examples = [*wrong.items()][:3]
        raise ValueError(f"not as of {time} in {table}, with version {allowed}: {examples}")

    def _versions(self, reference: str, table: str, time: int) -> Iterator[int]:
        """Yield the versions of a table that the reference may have had at a time."""
        own = [change for change in self.changes if change.reference == reference]
        for one in own:
            is_over = any(other.version > one.version and other.by <= time for other in own)
            if one.table == table and one.after <= time and not is_over:
                yield one.version


def _is_of(row: Row, batch: Row) -> bool:
    """Whether a batch has read the row, by the ledger."""
    (queue,) = batch["queues"]
    first, end = queue["rows"].get(str(row["$tablet_index"]), (0, 0))
    return int(first) <= int(row["$row_index"]) < int(end)


def _place(row: Row) -> tuple[int, int]:
    return int(row["$tablet_index"]), int(row["$row_index"])
