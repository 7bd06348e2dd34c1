"""Rows that REJECT of transform.py keeps out of transform(), with their position and the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from pyspark.errors import PySparkException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from ..connector.choose_connector import in_use
from ..connector.java import Java, jvm_of
from ..connector.pyspark_internals import has_clock_texts
from ..connector.spark_plan import Expression as PlanExpression
from ..connector.spark_plan import analysed
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED, Job, JobContext
from ..outputs import any_columns, row_json
from ..spark.source import ARRIVED, INNER_POSITION
from ..spark.spark_errors import cause
from . import collected

REASON = "__ytstream_reason"
"""The column that travels with a row to its batch."""
_RUNNING_CLOCKS = ("Now", "CurrentTime")
"""Clocks that Spark does not replace by the batch's time (MicroBatchExecution.runBatch): each look
at them may give another one."""


def tagged(events: DataFrame, context: JobContext) -> DataFrame:
    """Return ``events`` with the reason to reject each row, null for rows that pass.

    Each reason of REJECT and WARN is counted (``observe``), and the log tells the counts; with the
    runtime's own connector the lines of collected.py are behind them. Spark puts the batch's time
    in the place of current_timestamp(). Raises JobError for a text that is not a condition, or one
    that may judge one row in two ways.
    """
    job = context.job
    for name, conditions in (("REJECT", job.reject), ("WARN", job.warn)):
        for reason, condition in conditions.items():
            _verify_condition(events, job, f"{name}[{reason!r}] in transform.py", condition)
    rows, spark = events.withColumn(REASON, _reason(job)), events.sparkSession
    is_kept = F.col(REASON).isNull()
    counts = [
        *(F.count(F.when(F.col(REASON) == reason, 1)).alias(reason) for reason in job.reject),
        *(F.count(F.when(is_kept & F.expr(f"({text})"), 1)).alias(reason)
          for reason, text in job.warn.items()),
    ]  # fmt: skip
    if not counts:  # a mark in the plan for late rows
        counts = [F.count(F.lit(1)).alias("rows")]
    if not job.reject or not in_use(spark, context.settings).is_own:
        return rows.observe(REJECTED, *counts)
    row = StructType([events.schema[column.name] for column in job.queue_columns])
    queues = context.settings.queues
    java = Java(jvm_of(spark))
    lines = collected.observed(java, rows, row, REASON, [*job.reject], queues)
    return rows.observe(REJECTED, *counts, lines)


def passed(rows: DataFrame) -> DataFrame:
    """Return the rows for transform(), as if REJECT had not looked at them."""
    return rows.filter(F.col(REASON).isNull()).drop(REASON, ARRIVED, *INNER_POSITION.values())


def columns(
    arrived: StructType, job: Job, queues: int, reason: Expression | None = None, *notes: Expression
) -> list[Expression]:
    """Return the columns of the output `rejected` but its time, for rows with this schema.

    Hundreds of calls of Java: made once for all batches of a query.
    """
    row = StructType([arrived[column.name] for column in job.queue_columns])
    return [
        *([F.col("queue_id")] if queues > 1 else []),
        *(F.col(inner).alias(name) for name, inner in INNER_POSITION.items()),
        (F.col(REASON) if reason is None else reason).alias("reason"),
        row_json.written(row, *notes).alias("row"),
    ]


def frame(rows: DataFrame, chosen: Sequence[Expression], now: datetime) -> DataFrame:
    """Return the rows of the output `rejected`, of which ``chosen`` are the columns."""
    return rows.filter(F.col(REASON).isNotNull()).select(*chosen, F.lit(now).alias("time"))


def restored(rejected: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows that ``tagged`` gave, out of those that ``frame`` made of them.

    ``schema`` is that of the queues' columns. Skip a row that cannot be restored.
    """
    position = (F.col(name).alias(inner) for name, inner in INNER_POSITION.items())
    queue = [name for name in ("queue_id",) if name in rejected.columns]
    chosen = rejected.select(*queue, *position, F.col("reason").alias(REASON), "row")
    names = [name for name in chosen.columns if name != "row"]
    return row_json.read(chosen, "row", schema, *names)


def _reason(job: Job) -> Expression:
    """Return the first reason whose condition is true; null counts as false."""
    reasons = [F.when(F.expr(text), F.lit(reason)) for reason, text in job.reject.items()]
    return F.coalesce(*reasons, F.lit(None).cast("string"))


def _verify_condition(events: DataFrame, job: Job, name: str, condition: str) -> None:
    try:
        with any_columns.prepared(events.sparkSession, job, name, ErrorCode.REJECT):
            chosen = events.select(F.expr(condition).alias("wanted"))
            kind = chosen.schema["wanted"].dataType
    except PySparkException as error:
        raise JobError(
            f"{name}: {cause(str(error))}", "correct the condition", code=ErrorCode.REJECT
        ) from error
    any_columns.verify(chosen, job, name, ErrorCode.REJECT)
    plan = analysed(chosen)
    is_of_rows = [n.name for n in plan.walk()] == [
        "Project",
        *(n.name for n in analysed(events).walk()),
    ]
    remedy = "write a condition on the columns of one row"
    if not isinstance(kind, BooleanType):
        problem = f"{condition} gives Spark's {kind.simpleString()}, and not true or false"
        remedy = "compare it with something, e.g. price <= 0"
    elif not is_of_rows or plan.subqueries:
        problem = f"{condition} uses more than one row"
    elif unsteady := [*_unsteady(plan.expressions[0])]:
        problem = f"{condition} may judge a row in one way now and in another when it is read again"
        remedy = (
            f"{unsteady[0]} gives another value each time; of the clocks use current_timestamp(), "
            "which is the batch's time"
        )
    elif has_clock_texts(chosen):
        problem = f"{condition} has a text such as 'now', and a time that differs in its place"
        remedy = (
            "use current_timestamp(), which is the batch's time; for 'epoch' timestamp_seconds(0)"
        )
    else:
        return
    raise JobError(f"{name}: {problem}", remedy, code=ErrorCode.REJECT)


def _unsteady(expression: PlanExpression) -> Iterator[str]:
    """Yield the functions in an expression that may give another value for the same row."""
    for child in expression.children:
        yield from _unsteady(child)
    is_unsteady_inside = any(not child.is_deterministic for child in expression.children)
    is_one = not expression.is_deterministic and not is_unsteady_inside
    if is_one or expression.name in _RUNNING_CLOCKS:
        yield expression.function
