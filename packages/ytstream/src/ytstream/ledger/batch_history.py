"""Rows of the ledger by their keys, and the batch that was the last one at a time.

A query that orders batches by their number reads all of them, up to 500 000 (YTsaurus, "Queries":
ORDER BY). Their numbers are successive, so each row is looked up by its key instead.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ..cluster.client import Client
from . import ledger_rows
from .ledger_rows import Head

LedgerRow = Mapping[str, Any]
_WIDTH = 64
"""Rows that one look of a search asks for: four looks find one of a million."""


def batches(client: Client, path: str, numbers: Iterable[int]) -> list[LedgerRow]:
    """Return those of the batches that the ledger has, in their order."""
    keys = [{"kind": "batch", "number": number} for number in numbers]
    found = client.lookup_rows(path, keys) if keys else ()
    return sorted(found, key=lambda row: int(row["number"]))


def newest(client: Client, path: str, head: Head, count: int) -> list[LedgerRow]:
    """Return the last batches, the newest one last."""
    return batches(client, path, range(max(1, head.number - count + 1), head.number + 1))


def at(client: Client, path: str, head: Head, time: datetime) -> LedgerRow | None:
    """Return the last batch that had ended at ``time``; None if none that is kept had."""
    low, high = max(0, head.number - ledger_rows.kept(head)), head.number + 1
    found: LedgerRow | None = None
    while high - low > 1:
        step = max(1, (high - low) // _WIDTH)
        rows = batches(client, path, range(low + 1, high, step))
        before = [row for row in rows if ledger_rows.time_of(row["ended"]) <= time]
        if before:
            found, low = before[-1], int(before[-1]["number"])
        if len(before) < len(rows):
            high = int(rows[len(before)]["number"])
        elif step == 1 or not rows:  # all that are left were looked at, or a person removed them
            break
    return found


def epochs_since(client: Client, path: str, head: Head, time: datetime) -> int:
    """Return how many starts there were since ``time``, as far as batches are kept.

    The first start of all counts as none.
    """
    before = at(client, path, head, time)
    if before is None:
        oldest = batches(client, path, [max(1, head.number - ledger_rows.kept(head) + 1)])
        before = oldest[0] if oldest else {"epoch": 1}
    return head.epoch - int(before["epoch"])
