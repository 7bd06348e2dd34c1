"""Rows that REJECT of transform.py keeps out of transform(), with their position and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from ..errors import JobError
from ..job import REJECTED, Job
from ..plan import analysed, each
from . import row_json
from .source import INNER_POSITION
from .spark_errors import cause

#: The column that travels with a row to its batch.
REASON = "__ytstream_reason"
#: A batch that rejects no more rows than this never ends the job, whatever part of it they are.
FEW = 20


def tagged(events: DataFrame, job: Job) -> DataFrame:
    """Return ``events`` with the reason to reject each row, null for rows that pass.

    Each reason is counted (``observe``), and the log tells the counts. Raises JobError for a
    condition that is none.
    """
    for reason, condition in job.reject.items():
        _verify_condition(events, reason, condition)
    counts = (F.count(F.when(F.col(REASON) == reason, 1)).alias(reason) for reason in job.reject)
    return events.withColumn(REASON, _reason(job)).observe(REJECTED, *counts)


def passed(rows: DataFrame) -> DataFrame:
    """Return the rows for transform(), as if REJECT had not looked at them."""
    return rows.filter(F.col(REASON).isNull()).drop(REASON, *INNER_POSITION.values())


def frame(rows: DataFrame, job: Job, queues: int, now: datetime) -> DataFrame:
    """Return the rows of the output `rejected`."""
    columns = StructType([rows.schema[column.name] for column in job.queue_columns])
    position = (F.col(inner).alias(name) for name, inner in INNER_POSITION.items())
    return rows.filter(F.col(REASON).isNotNull()).select(
        *(["queue_id"] if queues > 1 else []),
        *position,
        F.col(REASON).alias("reason"),
        F.lit(now).alias("time"),
        row_json.written(columns).alias("row"),
    )


def restored(rejected: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows that ``tagged`` gave, out of those that ``frame`` made of them.

    ``schema`` is that of the queues' columns. A row that cannot be made again is left out.
    """
    position = (F.col(name).alias(inner) for name, inner in INNER_POSITION.items())
    queue = [name for name in ("queue_id",) if name in rejected.columns]
    chosen = rejected.select(*queue, *position, F.col("reason").alias(REASON), "row")
    names = [name for name in chosen.columns if name != "row"]
    return row_json.read(chosen, "row", schema, *names)


def counts(metrics: Mapping[str, Any], job: Job) -> dict[str, int]:
    """Return reason -> rows, out of what a batch's plan has observed."""
    found = metrics.get(REJECTED)  # absent where Spark has optimised an empty batch away
    return {
        reason: int(found.get(index)) if found is not None else 0
        for index, reason in enumerate(job.reject)
    }


def verify_limit(counts: Mapping[str, int], read: int, limit: float) -> int:
    """Return how many of the ``read`` rows were rejected.

    Raises JobError when they are more than the part ``limit``: that is a producer that has changed,
    not a bad row.
    """
    rejected = sum(counts.values())
    if rejected > max(FEW, limit * read):
        reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
        raise JobError(
            f"{rejected} of {read} rows of a micro-batch were rejected: {reasons}; reject_limit "
            f"allows {limit:.0%}",
            "look at the newest rows of the queues; correct their producer or REJECT in "
            "transform.py, or raise reject_limit in the configuration",
        )
    return rejected


def _reason(job: Job) -> Expression:
    """Return the first reason whose condition is true; null counts as false."""
    reasons = [F.when(F.expr(text), F.lit(reason)) for reason, text in job.reject.items()]
    return F.coalesce(*reasons)


def _verify_condition(events: DataFrame, reason: str, condition: str) -> None:
    name = f"REJECT[{reason!r}] in transform.py"
    try:
        chosen = events.select(F.expr(condition).alias("wanted"))
        kind = chosen.schema["wanted"].dataType
    except PySparkException as error:
        raise JobError(f"{name}: {cause(str(error))}", "correct the condition") from error
    nodes = [node.name for node in analysed(chosen).walk()]
    is_of_rows = nodes == ["Project", *(node.name for node in analysed(events).walk())]
    if not isinstance(kind, BooleanType):
        problem = f"{condition} is of type {kind.simpleString()}, wanted a boolean"
    elif not is_of_rows or any(True for _ in each(analysed(chosen).jvm.subqueries())):
        problem = f"{condition} looks at more than one row"
    else:
        return
    raise JobError(f"{name}: {problem}", "write a condition on the columns of one row")
