"""Rows that an attempt at a batch has left in `rejected`, and that are not rejected any more.

Outside a transaction rejected rows are written before the batch has happened. An attempt that is
repeated replaces them under their positions, unless it accepts them: whether an archive has a
period for a row depends on the clock. Then the row is in a piece, and may not stay in `rejected`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from ..job import REJECTED, JobContext
from ..ledger.batch_row_ranges import Ranges
from ..ledger.ledger_rows import microseconds

if TYPE_CHECKING:
    from ..connector.tablet_transactions import Transaction


def remove(
    context: JobContext, transaction: Transaction, planned: Ranges, started: datetime
) -> None:
    """Delete rejected rows of these ranges that were written before this attempt ``started``.

    In the transaction that closes the batch: an older driver cannot commit it.
    """
    path, columns = context.settings.outputs[REJECTED], context.job.output_columns[REJECTED]
    if not (places := [*_places(context, planned)]):
        return
    key = ", ".join(column.name for column in columns if column.key)
    written = f"time < {microseconds(started)}u"
    query = f"{key} from [{path}] where ({' or '.join(places)}) and {written}"
    if found := transaction.select(query):
        transaction.modify(path, columns, [], found)


def _places(context: JobContext, planned: Ranges) -> Iterator[str]:
    """Yield the conditions for the rows of each partition."""
    is_of_many = len(context.settings.queues) > 1
    for queue, partitions in planned.items():
        of_queue = f'queue_id = "{queue}" and ' if is_of_many else ""
        for partition, rows in partitions.items():
            if rows.count:
                among = f"row_index >= {rows.first} and row_index < {rows.end}"
                yield f"({of_queue}tablet_index = {partition} and {among})"
