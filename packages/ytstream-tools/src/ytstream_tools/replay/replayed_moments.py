"""The moment of `replay-rejected` for references: that of the batch that rejected a row.

A rejected row has the time at which its batch was at work, and the batch's row in the ledger names
the tables and the moment of its lookups. Where a table is not sure to have its rows of that moment
any more, the present reference is read, and the replay says so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

from ytstream.cluster.client import Client, facts
from ytstream.job import JobContext
from ytstream.ledger import batch_history, ledger_rows
from ytstream.ledger.ledger_rows import LookedUp
from ytstream.provisioning import references

from . import reread
from .rejected_table import Rows

_BATCHES = 500
"""Batches that one request reads."""
Looked = Mapping[str, LookedUp]
"""By the name of a reference, without figures: equal for batches of one moment."""


class _Batch(NamedTuple):
    """When a batch was at work, in microseconds, and what it has looked up."""

    started: int
    ended: int
    looked_up: Looked


@dataclass(frozen=True)
class ReplayedMoments:
    """What the batches of the ledger have looked up, the first one first."""

    batches: Sequence[_Batch] = ()

    def of(self, row: Mapping[str, Any]) -> Looked:
        """Return what to look up for a rejected row; empty: the present reference."""
        time = int(row["time"])
        number = bisect_right(self.batches, time, key=lambda batch: batch.started)
        last = self.batches[number - 1] if number else None
        return last.looked_up if last is not None and time <= last.ended else {}

    def first(self, found: Rows) -> Rows:
        """Return the first of the rows, and those behind it that have the same moment."""
        return [*takewhile(lambda row: self.of(row) == self.of(found[0]), found)]


def read(context: JobContext, say: Callable[[str], None]) -> ReplayedMoments:
    """Return the moments of all batches that the ledger has, as far as the tables keep them."""
    if not context.job.references:
        return ReplayedMoments()
    tables, gone, batches = _Tables(context.client), dict[str, str](), list[_Batch]()
    for row in _batches(context):
        lost = {name: tables.lost(one) for name, one in ledger_rows.lookups_of(row).items()}
        gone |= {name: why for name, why in lost.items() if why}
        kept = {
            name: LookedUp(one.by, one.table, one.timestamp)
            for name, one in ledger_rows.lookups_of(row).items()
            if not lost[name]
        }
        batches.append(_Batch(int(row["started"]), int(row["ended"]), kept))
    for name, why in gone.items():
        say(f"reference {name}: for rows of some batches as it is now, since {why}")
    return ReplayedMoments(sorted(batches, key=lambda batch: batch.started))


@dataclass
class _Tables:
    """Tables that were looked up in, each asked for once."""

    client: Client
    known: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)

    def lost(self, one: LookedUp) -> str:
        """Return why a table may not have the rows of a moment; empty if it is sure to."""
        if one.table not in self.known:
            self.known[one.table] = facts(self.client, f"#{one.table}", references.KEPT_BY)
        found = self.known[one.table]
        return "the table was removed" if found is None else references.lost(found, one.timestamp)


def _batches(context: JobContext) -> Iterator[batch_history.LedgerRow]:
    """Yield the batches that the ledger has."""
    head = reread.head_of(context)
    if head is None:
        return
    first = max(1, head.number - ledger_rows.kept(head) + 1)
    for start in range(first, head.number + 1, _BATCHES):
        numbers = range(start, min(start + _BATCHES, head.number + 1))
        yield from batch_history.batches(context.client, context.settings.ledger, numbers)
