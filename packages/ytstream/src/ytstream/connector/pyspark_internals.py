"""Columns, frames, sessions and queries: what PySpark keeps to itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

from ..version import version_of
from .java import Java, jvm_of
from .spark_plan import analysed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


_EXPRESSIONS = "org.apache.spark.sql.classic.ExpressionUtils"
"""A column of Spark 4 has no expression of its own: this class turns one into the other."""


def aggregated(column: Column, function: str, java: Java, *arguments: object) -> Column:
    """Return a column with an aggregate of another one.

    ``function`` is a class of Java that takes an expression and the arguments.
    """
    made = java[function](_expression(column, java), *arguments)
    return _column(made.toAggregateExpression(), column, java)


def computed(column: Column, function: str, java: Java, *arguments: object) -> Column:
    """Return a column that a class of Java computes: it takes an expression and the arguments."""
    return _column(java[function](_expression(column, java), *arguments), column, java)


def _expression(column: Column, java: Java) -> Any:
    of_java = cast("Any", column._jc)
    return of_java.expr() if _is_old() else java[f"{_EXPRESSIONS}.expression"](of_java)


def _column(expression: Any, like: Column, java: Java) -> Column:
    of_expression = "org.apache.spark.sql.Column" if _is_old() else f"{_EXPRESSIONS}.column"
    return type(like)(java[of_expression](expression))


def _is_old() -> bool:
    return version_of("pyspark").startswith("3.")


def clock_pattern(spark: SparkSession) -> Any:
    """Return the pattern of expressions with a clock in them."""
    return Java(jvm_of(spark))["org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE"]()


def has_clock_texts(rows: DataFrame) -> bool:
    """Return whether texts such as 'now' and 'today' are cast to times in the plan of a frame.

    Spark's optimizer puts the time in their place, another one in each execution
    (SpecialDatetimeValues); the analysed plan has the text. So has one with 'epoch', which stays.
    """
    java, rules = Java(jvm_of(rows.sparkSession)), "org.apache.spark.sql.catalyst.optimizer"
    plan = java[f"{rules}.ReplaceExpressions.apply"](analysed(rows).jvm)
    return not java[f"{rules}.SpecialDatetimeValues.apply"](plan).fastEquals(plan)


def verify_stream(rows: DataFrame, output_mode: str) -> None:
    """Raise Spark's AnalysisException for a plan that it refuses as a stream."""
    java, sql = Java(jvm_of(rows.sparkSession)), "org.apache.spark.sql"
    checker = java[f"{sql}.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming"]
    checker(analysed(rows).jvm, java[f"{sql}.streaming.OutputMode.{output_mode.title()}"]())


class QueryStartedError(Exception):
    """A thread that may not start a query does so."""


class _Thread(threading.local):
    may_start = True


_thread = _Thread()


@contextmanager
def without_queries() -> Iterator[None]:
    """Let this thread start no query: it would read, and may move a consumer, before it is found.

    Raises QueryStartedError where it is tried.
    """
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    for name in ("start", "toTable"):
        method = getattr(DataStreamWriter, name)
        if not hasattr(method, "__wrapped__"):  # done already
            setattr(DataStreamWriter, name, _permitted(method))
    before, _thread.may_start = _thread.may_start, False
    try:
        yield
    finally:
        _thread.may_start = before


def _permitted(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def start(*given: Any, **named: Any) -> Any:
        if not _thread.may_start:
            raise QueryStartedError
        return method(*given, **named)

    return start


def start_unverified(writer: DataStreamWriter, spark: SparkSession) -> StreamingQuery:
    """Start a query whose plan Spark would refuse as a stream (Spark, ResolveWriteToStream).

    What runs in its batches is verified as ever: they have a copy of the session.
    """
    key = "spark.sql.streaming.unsupportedOperationCheck"
    spark.conf.set(key, "false")
    try:
        query = writer.start()
    finally:
        spark.conf.unset(key)
    query._jsq.streamingQuery().sparkSessionForStream().conf().unset(key)
    return query


def progress_since(query: StreamingQuery, time: str) -> list[dict[str, Any]]:
    """Return what Spark tells of a query's triggers after that of ``time``, the oldest first.

    By the order of the reports, since the clock may be set back. Not by ``recentProgress``, which
    makes Python objects of the last hundred in each call.
    """
    told = query._jsq.recentProgress()
    found: list[dict[str, Any]] = []
    for index in reversed(range(len(told))):
        if told[index].timestamp() == time:
            break
        found.insert(0, json.loads(told[index].json()))
    return found


def commit_milliseconds(query: StreamingQuery, batch: int) -> int:
    """Return how long a query took to commit a batch that it has just ended; 0: not known."""
    told = query._jsq.lastProgress()
    facts = json.loads(told.json()) if told is not None else {}
    spent = facts.get("durationMs", {})
    if facts.get("batchId") != batch or "addBatch" not in spent:
        return 0
    before = ("latestOffset", "getBatch", "walCommit", "queryPlanning", "addBatch")
    return max(0, int(spent.get("triggerExecution", 0)) - sum(int(spent.get(n, 0)) for n in before))


def free(checkpointed: DataFrame) -> None:
    """Remove the blocks of a local checkpoint.

    Nothing else does before Java's collector runs (Spark, ContextCleaner).
    """
    analysed(checkpointed).jvm.rdd().unpersist(False)


def of_execution(rows: DataFrame, execution: Any, java: Java) -> DataFrame:
    """Return ``rows`` as an execution of the same rows gives them."""
    frame = java[rows._jdf.getClass().getName()](execution, rows._jdf.encoder())
    return type(rows)(frame, rows.sparkSession)


def state_verifier() -> Callable[[Any], None]:
    """Return a function that raises Spark's error for a state that does not fit its schema.

    Python workers get a function of a function whole, so it needs nothing of this runtime there.
    """
    verifiers: list[Callable[[Any], None]] = []  # made once for each task of Spark's

    def verify(state: Any) -> None:
        from pyspark.sql.types import _make_type_verifier

        if not verifiers:
            verifiers.append(_make_type_verifier(state._value_schema))
        verifiers[0](state.get)

    return verify
