"""Which rows a micro-batch reads, by Spark's plan of it, compared with the ledger.

Without a transaction SPYT takes the first rows of a query from the consumer, and moves the consumer
a batch late and without an old offset (YtStreamingSource.commit). So an older driver can still
move it after the start has put it where the ledger is. The plan holds the rows that SPYT has chosen
by then: it does not matter when the consumer was moved, or whether the rows can be counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from ..errors import RestartableError
from ..plan import class_name, each
from ..tablets import Java
from .audit import Range, Ranges

#: A partition of SPYT's RDD: the tablet, the first row, and the row after the last one.
_RANGE = "tech.ytsaurus.spyt.streaming.YtQueueRange"
_TEXT = re.compile(r"YtQueueRange\((\d+),(\d+),(\d+)\)")

#: Of each place in the plan that reads a queue: partition -> its rows.
Reads = Sequence[Mapping[int, Range]]


def reads(execution: Any) -> list[dict[int, Range]]:
    """Return the rows that a batch reads, in the order of Spark's offset log.

    A queue without new rows is an empty relation there (MicroBatchExecution.runBatch). A reference
    to a CTE is no place of its own: the CTE is in the plan as well, once.
    """
    leaves = [(leaf, class_name(leaf)) for leaf in each(execution.logical().collectLeaves())]
    return [
        _ranges(str(leaf.rdd().toJavaRDD().partitions().toString())) if name == "LogicalRDD" else {}
        for leaf, name in leaves
        if name != "CTERelationRef" and leaf.isStreaming()
    ]


def is_readable(java: Java) -> bool:
    """Return whether SPYT's ranges have the text that reads() takes apart: it is one call."""
    return _ranges(f"[{java[_RANGE](2, 5, 8).toString()}]") == {2: Range(5, 8)}


def verify_start(name: str, planned: Ranges, read: Reads) -> None:
    """Raise RestartableError unless a batch reads the rows between the head and its own end.

    ``planned`` has the queues in their order. The next start moves the consumer to the head again.
    """
    if not read or len(read) % len(planned):
        raise RestartableError(
            f"the plan of batch {name} reads {len(read)} sources for {len(planned)} queues"
        )
    for (path, wanted), found in zip(cycle(planned.items()), read, strict=False):
        rows = {partition: range_ for partition, range_ in found.items() if range_.count}
        for partition in sorted({*wanted, *rows}):
            if (has := rows.get(partition)) != (wants := wanted.get(partition)):
                raise RestartableError(
                    f"batch {name} would read {_text(has)} of {path}, partition {partition}, and "
                    f"by the ledger {_text(wants)}: something else moved the consumer after the "
                    "start"
                )


def _ranges(text: str) -> dict[int, Range]:
    found = (map(int, numbers) for numbers in _TEXT.findall(text))
    return {tablet: Range(first, end) for tablet, first, end in found}


def _text(rows: Range | None) -> str:
    return f"rows {rows.first} to {rows.end - 1}" if rows else "no rows"
