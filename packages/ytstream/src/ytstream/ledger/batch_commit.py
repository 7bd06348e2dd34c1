"""How a micro-batch gets into the ledger: its head and its row, in one transaction.

Under `transactional` that is SPYT's, with the outputs; else one of their own, with the consumer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import ConflictError
from . import archive_rows, ledger_rows
from .batch_row_ranges import Ranges
from .ledger_rows import BatchRow, Head, StoreFigures
from .positions import Select

if TYPE_CHECKING:  # the ledger is read without Spark as well
    from ..connector.tablet_transactions import Tablets, Transaction

_CLOSINGS = 5
"""Attempts at the transaction that closes a batch, and the pause after the first one."""
_PAUSE_SECONDS = 0.1


def moved(
    head: Head,
    number: int,
    planned: Ranges,
    state: int | None = None,
    store: StoreFigures | None = None,
) -> Head:
    """Return the head after the batch, which leaves ``state`` rows in the state."""
    ends = {
        path: {**rows, **{p: range_.end for p, range_ in planned.get(path, {}).items()}}
        for path, rows in head.ends.items()
    }
    since = ends if state == 0 else head.state_since
    after = replace(head, batch=number, number=head.number + 1, ends=ends)
    return replace(after, state_rows=state, state_since=since, store=store)


def close_batch(
    tablets: Tablets,
    verify: Callable[[Select], Head],
    consumer: str,
    path: str,
    head: Head,
    done: BatchRow,
    also: Callable[[Transaction], None] = lambda _: None,
) -> None:
    """Write the head and move the consumer there, once the outputs of a batch are written.

    ``also`` is what else the transaction does.

    SPYT in an older driver moves the consumer without a fence. That may conflict with this
    transaction, which has written nothing then: it is repeated, and the outputs are not. Raises
    what ``verify`` raises when another process has written the head, or ConflictError.
    """
    for attempt in range(_CLOSINGS):
        try:
            with tablets.transaction() as own:
                verify(own.select)
                write_head(own, path, head, done)
                also(own)
                for queue, partitions in done.ranges.items():
                    ends = {partition: end for partition, (_, end) in partitions.items()}
                    own.advance_all(consumer, queue, ends)
        except ConflictError:
            if attempt + 1 == _CLOSINGS:
                raise
            time.sleep(_PAUSE_SECONDS * 2**attempt)
        else:
            return


def write_head(transaction: Transaction, path: str, head: Head, done: BatchRow) -> None:
    """Write the head and the batch's row into the ledger at ``path``; remove the oldest row."""
    totals = ledger_rows.added(head.totals, done)
    head = replace(head, totals=totals, timestamp=transaction.timestamp)
    rows = [ledger_rows.head_row(head), ledger_rows.batch_row(head, done)]
    rows += archive_rows.piece_rows(done, head.number, head.epoch, head.batch)
    last = head.number - ledger_rows.kept(head)
    old = [{"kind": "batch", "number": last}] if last > 0 else []
    transaction.modify(path, ledger_rows.COLUMNS, rows, old)
