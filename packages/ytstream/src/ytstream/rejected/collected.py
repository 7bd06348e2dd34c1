"""The rejected rows of a micro-batch as the query itself has collected them, or sent.

The query observes a line for each row that it rejects, and no row is read again. A task that writes
the output in the batch's transaction sends the rows itself, and the driver gets their number.
Elsewhere the lines come to the driver with the results of the tasks, where they are few. This needs
the runtime's own Java (connector/jvm/Lines.java).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructType

from ..connector import compile_java
from ..connector.java import Java
from ..ledger.batch_row_ranges import Ranges, RowRange
from ..ledger.ledger_rows import microseconds
from ..outputs import row_json
from ..schema.columns import Column
from ..spark.source import INNER_POSITION

MOST_OF_A_TASK, MOST = 1 << 20, 8 << 20
"""Bytes of the lines of one task, and of all: they pass through the driver's memory."""
MOST_ROWS = 50_000
"""More rows are not written by one process."""
_SENT = "="
"""What a line begins with that says how many other ones a task has sent to the table itself."""
_TOO_LONG = "\n"
"""In place of a line that is too long; see Lines.java, which gives this for all of them then."""

Collected = tuple[str, int, int, str, str]
"""The values of a row of the output, but its time: queue, partition, row, reason, JSON."""


def observed(
    java: Java,
    arrived: DataFrame,
    row: StructType,
    reason: str,
    reasons: Sequence[str],
    queues: Sequence[str],
) -> Expression:
    """Return what to observe of the rows ``arrived``.

    ``row`` are the queue's columns, and ``reason`` is that with the reason.

    Not a column that they get first: each task would generate code for it, and copy every row. The
    JSON of a long row takes many times its memory, so it is not made here.
    """
    queue = F.lit(0) if len(queues) == 1 else _number(F.col("queue_id"), queues)
    position = [F.col(name) for name in INNER_POSITION.values()]
    words = [queue, *position, _number(F.col(reason), reasons)]
    # Null with a null in it, unlike concat_ws(): then a line is missing, and all rows are read.
    line = F.concat(*chain.from_iterable((word, F.lit(" ")) for word in words), row_json.exact(row))
    written = F.when(_bytes(row) > MOST_OF_A_TASK, F.lit(_TOO_LONG)).otherwise(line)
    many = ["queue_id"] if len(queues) > 1 else []
    names = [*many, *INNER_POSITION.values(), reason, *row.names]
    schema = StructType([arrived.schema[name] for name in names])
    once = arrived.sparkSession.createDataFrame([], schema).select(written.alias("line"))
    columns = F.struct(*(F.col(f"`{name}`") for name in names))
    lines = F.when(F.col(reason).isNotNull(), compile_java.opaque(java, columns, once))
    return compile_java.lines(java, lines, MOST_OF_A_TASK, MOST).alias("lines")


def _bytes(row: StructType) -> Expression:
    """Return the bytes of the texts of a row, as far as they are columns of their own."""
    texts = [f.name for f in row if isinstance(f.dataType, StringType | BinaryType)]
    sizes = (F.coalesce(F.octet_length(f"`{name}`"), F.lit(0)) for name in texts)
    # Not a sum of columns: Spark adds one after the other, however they are put together
    # (ReorderAssociativeOperator), and descends as many levels (see balanced.py).
    return F.aggregate(F.array(F.lit(0), *sizes), F.lit(0).cast("bigint"), lambda sum, n: sum + n)


def _number(text: Expression, texts: Sequence[str]) -> Expression:
    return F.coalesce(*(F.when(text == each, number) for number, each in enumerate(texts)))


def rows_of(
    text: str, counts: Mapping[str, int], planned: Ranges, queues: Sequence[str]
) -> list[Collected] | None:
    """Return the rejected rows out of their lines, which end with a line break.

    None where they are not few, and unless each is one of those that were planned and counted: they
    are more after an attempt at a task that was repeated. Empty where tasks have sent all of them.
    """
    lines, reasons = text.split("\n")[:-1], [*counts]
    sent = [int(line.removeprefix(_SENT)) for line in lines if line.startswith(_SENT)]
    if sent:
        return [] if len(sent) == len(lines) and sum(sent) == sum(counts.values()) else None
    if text == _TOO_LONG or not len(lines) == sum(counts.values()) <= MOST_ROWS:
        return None
    found = []
    for line in lines:
        queue, tablet, row, reason, written = line.split(" ", 4)
        found.append((queues[int(queue)], int(tablet), int(row), reasons[int(reason)], written))
    places = {(queue, tablet, row) for queue, tablet, row, *_ in found}
    is_planned = all(_has(planned.get(queue, {}).get(tablet), row) for queue, tablet, row in places)
    by_reason = Counter(reason for *_, reason, _ in found)
    is_exact = len(places) == len(found) and all(by_reason[r] == n for r, n in counts.items())
    return found if is_planned and is_exact else None


def _has(rows: RowRange | None, row: int) -> bool:
    return rows is not None and rows.first <= row < rows.end


def values(
    rows: Sequence[Collected], columns: Sequence[Column], now: datetime
) -> list[list[str | int]]:
    """Return the rows as values of the output's columns, in their order."""
    names = ("queue_id", *INNER_POSITION, "reason", "row", "time")
    chosen = [names.index(column.name) for column in columns]
    made = ((*row, microseconds(now)) for row in rows)
    return [[row[place] for place in chosen] for row in made]
