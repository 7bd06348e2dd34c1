"""The rejected rows of a micro-batch: its rows are read once more, and those that pass left out.

The query streams the rows that pass, and counts the others. A plan with state runs once, and one
plan cannot give two kinds of rows. So a batch that has counted any reads its rows again, by the
part of its own plan that gives each row its reason: there Spark has put the batch's rows in the
queues' place, and the time in the batch's entry of the offset log in the clock's
(MicroBatchExecution.runBatch). The rows of a queue do not change, so both readings give a row the
same reason, and a batch that runs again does so, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from ..connector import Java, analysed_by, observed, of_no_stream
from ..errors import RestartableError
from ..job import REJECTED, Connection
from ..plan import observed_name
from . import reject
from .audit import Ranges
from .left_out import rejected
from .sink import write


def write_rejected(
    rows: DataFrame,
    execution: Any,
    connection: Connection,
    java: Java,
    batch: tuple[int, str],
    counts: Mapping[str, int] | None,
    planned: Ranges,
) -> dict[str, int]:
    """Write the rejected rows of a batch into their output; return reason -> rows.

    ``rows`` are those of the ``batch``, its number and its name; ``execution`` is that of the
    query, and ``counts`` what it has counted, if it has. Raises RestartableError when the second
    reading gives other rows.
    """
    number, name = batch
    job, frame = connection.job, rejected_rows(rows, execution, connection, java)
    metrics = dict(observed(write(frame, REJECTED, connection, java, number)))
    for path, partitions in ((path, rows.values()) for path, rows in planned.items() if rows):
        wanted = sum(part.count for part in partitions), sum(part.sum for part in partitions)
        found = metrics.get(observed_name(path))  # absent where no condition can be true
        if found and wanted != (found.get(0), wanted[1] if found.isNullAt(1) else found.get(1)):
            raise RestartableError(
                f"batch {name} read other rows of {path} for {REJECTED!r} than those planned"
            )
    again = rejected(metrics, job) or dict.fromkeys(job.reject, 0)
    if counts is not None and again != counts:
        raise RestartableError(
            f"batch {name} rejected {counts} while it read its rows, and {again} when it read "
            "them again"
        )
    return again


def rejected_rows(rows: DataFrame, execution: Any, connection: Connection, java: Java) -> DataFrame:
    """Return the rejected rows of a batch as the output holds them, to be read once more."""
    tagged, queues = _tagged(rows, execution, java), len(connection.settings.queues)
    return reject.frame(tagged, connection.job, queues, datetime.now(UTC))


def _tagged(rows: DataFrame, execution: Any, java: Java) -> DataFrame:
    """Return the batch's rows as reject.tagged() gave them to the query, to be read once more."""
    nodes = analysed_by(execution).walk()
    return of_no_stream(rows, next(n for n in nodes if n.observation == REJECTED), java)
