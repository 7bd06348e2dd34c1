"""A micro-batch: what it reads, and its plan, run once more outside of the query."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .java import PYTHON_UTILS, Java, class_name, each
from .spark_plan import Node
from .spyt import ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


_LEAVES: Mapping[str, tuple[int, int]] = {"LogicalRDD": (4, 3), "LocalRelation": (2, 0)}
"""Leaves of a batch's plan: the field that says whether the rows are of a stream, and how many
arguments of the class are not fields (Spark, LogicalRDD: the session, and two options)."""


def planned_by(query: StreamingQuery, number: int) -> tuple[Any, list[dict[int, int]]]:
    """Return a query's execution of its batch, and where the partitions end after it.

    The ends are those of Spark's offset log, see spark_logs.by_queue(). The log keeps its newest
    entries in memory (Spark, HDFSMetadataLog), so this sends no request.
    """
    stream = query._jsq.streamingQuery()
    ends = []
    for offset in each(stream.offsetLog().get(number).get().offsets()):
        # Empty for a queue that has not had a row yet.
        partitions = json.loads(offset.get().json())["partitions"] if offset.isDefined() else {}
        ends.append({int(partition): last + 1 for partition, last in partitions.items()})
    return stream.lastExecution(), ends


def ranges_read(execution: Any) -> list[dict[int, tuple[int, int]]]:
    """Return the rows that a batch reads, in the order of Spark's offset log.

    By tablet: the first row, and the row after the last one. A queue without new rows is an empty
    relation there (MicroBatchExecution.runBatch). A reference to a CTE is not a place of its own:
    the CTE is also in the plan, once.
    """
    leaves = [(leaf, class_name(leaf)) for leaf in each(execution.logical().collectLeaves())]
    return [
        ranges(str(leaf.rdd().toJavaRDD().partitions().toString())) if name == "LogicalRDD" else {}
        for leaf, name in leaves
        if name != "CTERelationRef" and leaf.isStreaming()
    ]


def of_no_stream(rows: DataFrame, node: Node, java: Java) -> DataFrame:
    """Return what ``node``, of the plan of the batch ``rows``, gives when it runs again."""
    session = rows._jdf.sparkSession()
    again = of_no_stream_plan(node.jvm, session, java)
    frame = java[f"{rows._jdf.getClass().getName()}.ofRows"](session, again)
    return type(rows)(frame, rows.sparkSession)


def of_no_stream_plan(plan: Any, session: Any, java: Java) -> Any:
    """Return the plan whose leaves are of no stream: Spark runs no other outside of a query."""
    if (name := class_name(plan)) in _LEAVES:
        place, more = _LEAVES[name]
        fields = [plan.productElement(index) for index in range(plan.productArity())]
        fields[place] = False
        arguments = [session, java.option(None), java.option(None)][:more]
        return java[plan.getClass().getName()](*fields, *arguments)
    children = [of_no_stream_plan(child, session, java) for child in each(plan.children())]
    return plan.withNewChildren(java[f"{PYTHON_UTILS}.toSeq"](children))
