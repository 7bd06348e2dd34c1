"""The rejected rows of a micro-batch: its rows are read once more, and those that pass left out.

The query streams the rows that pass, and counts the others. A plan with state runs once, and one
plan cannot give two kinds of rows. So a batch that has counted any reads its rows again, by the
part of its own plan that gives each row its reason: there Spark has put the batch's rows in the
queues' place, and the time in the batch's entry of the offset log in the clock's
(MicroBatchExecution.runBatch). The rows of a queue do not change, so both readings give a row the
same reason, and a batch that runs again does so, too. Where few were rejected, these alone are
read: see few.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from ..connector import Java, Node, analysed_by, observed, of_no_stream
from ..errors import OutageError, RestartableError
from ..job import REJECTED, Connection
from ..plan import observed_name
from ..tablets import Tablets
from . import few, reject
from .audit import Ranges
from .left_out import rejected
from .sink import write

#: Queue -> how many of its rows are to be read, and the sum of their numbers.
Wanted = Mapping[str, tuple[int, int]]


def write_rejected(
    rows: DataFrame,
    execution: Any,
    connection: Connection,
    tablets: Tablets,
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
    job, java = connection.job, tablets.java
    arrived, wanted = _arrived(rows, execution, connection, tablets, counts, planned)
    metrics = dict(observed(write(_of(arrived, connection), REJECTED, connection, java, number)))
    for path, (count, total) in wanted.items():
        found = metrics.get(observed_name(path))  # absent where no condition can be true
        if found and (count, total) != (found.get(0), total if found.isNullAt(1) else found.get(1)):
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
    return _of(of_no_stream(rows, _tagged(execution), java), connection)


def _of(arrived: DataFrame, connection: Connection) -> DataFrame:
    queues = len(connection.settings.queues)
    return reject.frame(arrived, connection.job, queues, datetime.now(UTC))


def _tagged(execution: Any) -> Node:
    """Return the part of a batch's plan that gives its rows their reason: reject.tagged()."""
    return next(n for n in analysed_by(execution).walk() if n.observation == REJECTED)


def _arrived(
    rows: DataFrame,
    execution: Any,
    connection: Connection,
    tablets: Tablets,
    counts: Mapping[str, int] | None,
    planned: Ranges,
) -> tuple[DataFrame, Wanted]:
    """Return the rejected rows with their reason, or all rows of the batch; and which to expect."""
    node, java = _tagged(execution), tablets.java
    places: few.Positions | None = None
    if counts is not None:
        places = few.positions(dict(observed(execution))[REJECTED], [*counts.values()], planned)
    others: Mapping[int, Any] = {}
    if places is not None:
        try:
            others = few.selected(rows, node, places, tablets)
        except OutageError:
            raise
        except RestartableError:  # a cluster that refuses the query gives all rows
            places = None
    if places is not None:
        wanted = {path: (len(keys), sum(row for _, row in keys)) for path, keys in places.items()}
    else:
        parts = {path: found.values() for path, found in planned.items()}
        wanted = {
            path: (sum(rows.count for rows in found), sum(rows.sum for rows in found))
            for path, found in parts.items()
        }
    read = {path: wanted[path] for path, found in planned.items() if found}
    return of_no_stream(rows, node, java, others), read
