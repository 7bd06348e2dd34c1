"""Whose rows an at_least_once job has written twice: rows of how many micro-batches.

A fault explains the rows of the batch that it cuts off. The next driver begins where that batch
began and reads at least its rows, so all of them are in one batch of the ledger. One row more in
each batch may be as many rows, and no fault explains them.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.faults.sweep import ranges
from tests.faults.sweep.oracle import Row

EVENT = "event_id"


def batches(
    repeated: Mapping[str, Counter[str]],
    columns: Mapping[str, Sequence[str]],
    queues: Mapping[str, Iterable[Row]],
    ledger: Iterable[Row],
) -> set[int]:
    """Return the numbers of the ledger's batches that have read these rows, which are there too
    often.

    Rows without an event, or with one that was published twice, say nothing.
    """
    positions: dict[str, list[tuple[str, int, int]]] = {}
    for path, rows in queues.items():
        for row in rows:
            at = path, int(row["$tablet_index"]), int(row["$row_index"])
            positions.setdefault(str(row[EVENT]), []).append(at)
    events = {
        str(ast.literal_eval(text)[columns[output].index(EVENT)])
        for output, texts in repeated.items()
        if EVENT in columns[output]
        for text in texts
    }
    found = {known[0] for event in events if len(known := positions.get(event, [])) == 1}
    return {
        int(batch["number"])
        for batch in ledger
        for path, partition, first, end in ranges.of_batch(batch)
        if any(at[:2] == (path, partition) and first <= at[2] < end for at in found)
    }
