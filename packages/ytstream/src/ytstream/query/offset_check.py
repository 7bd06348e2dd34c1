"""Which rows a micro-batch reads, by Spark's plan of it, compared with the ledger.

Without a transaction SPYT takes the first rows of a query from the consumer, and moves the consumer
a batch late and without an old offset (YtStreamingSource.commit). So an older driver can still
move it after the start has put it where the ledger is. The plan holds the rows that SPYT has chosen
by then: it does not matter when the consumer was moved, or whether the rows can be counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from ..connector.spark_batch import ranges_read
from ..errors import RestartableError
from ..errors.error_codes import ErrorCode
from ..ledger.batch_row_ranges import Ranges, RowRange

Reads = Sequence[Mapping[int, RowRange]]
"""For each place in the plan that reads a queue: partition -> its rows."""


def reads(execution: Any) -> list[dict[int, RowRange]]:
    """Return the rows that a batch reads, in the order of Spark's offset log."""
    return [
        {partition: RowRange(*rows) for partition, rows in found.items()}
        for found in ranges_read(execution)
    ]


def verify_start(name: str, planned: Ranges, read: Reads) -> None:
    """Raise RestartableError unless a batch reads the rows between the head and its own end.

    ``planned`` has the queues in their order. The next start moves the consumer to the head again.
    """
    if not read or len(read) % len(planned):
        raise RestartableError(
            f"the plan of batch {name} reads {len(read)} sources for {len(planned)} queues",
            code=ErrorCode.OTHER_ROWS,
        )
    for (path, wanted), found in zip(cycle(planned.items()), read, strict=False):
        rows = {partition: range_ for partition, range_ in found.items() if range_.count}
        for partition in sorted({*wanted, *rows}):
            if (has := rows.get(partition)) != (wants := wanted.get(partition)):
                raise RestartableError(
                    f"batch {name} would read {_text(has)} of {path}, partition {partition}, and "
                    f"by the ledger {_text(wants)}: something else moved the consumer after the "
                    "start",
                    code=ErrorCode.CONSUMER_MOVED,
                )


def _text(rows: RowRange | None) -> str:
    return f"rows {rows.first} to {rows.end - 1}" if rows else "no rows"
