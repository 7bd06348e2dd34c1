"""A micro-batch: what it reads, and its plan, run once more outside of the query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .java import PYTHON_UTILS, Java, class_name, each
from .plans import Node
from .spyt import POSITION, ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


#: Leaves of a batch's plan: the field that says whether the rows are of a stream, and how many
#: arguments of the class are not fields (Spark, LogicalRDD: the session, and two options).
_LEAVES: Mapping[str, tuple[int, int]] = {"LogicalRDD": (4, 3), "LocalRelation": (2, 0)}
#: Makes Spark's rows of the rowsets of the Java client.
_DESERIALIZER = "tech.ytsaurus.spyt.serializers.UnversionedRowsetDeserializer"
_ROWS = "tech.ytsaurus.client.rows"


def planned_by(query: StreamingQuery, number: int) -> tuple[Any, list[dict[int, int]]]:
    """Return a query's execution of its batch, and where the partitions end after it.

    The ends are those of Spark's offset log; see by_queue(). The log keeps its newest entries in
    memory (Spark, HDFSMetadataLog), so this sends no request.
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


def of_no_stream(
    rows: DataFrame, node: Node, java: Java, others: Mapping[int, Any] = MappingProxyType({})
) -> DataFrame:
    """Return what ``node``, of the plan of the batch ``rows``, gives when it runs again.

    ``others`` are RDDs in the place of what some leaves read: number of the leaf -> RDD.
    """
    session = rows._jdf.sparkSession()
    again = _of_no_stream(node.jvm, session, java, others, count())
    frame = java[f"{rows._jdf.getClass().getName()}.ofRows"](session, again)
    return type(rows)(frame, rows.sparkSession)


def _of_no_stream(
    plan: Any, session: Any, java: Java, others: Mapping[int, Any], numbers: Iterator[int]
) -> Any:
    """Return the plan whose leaves are of no stream: Spark runs no other outside of a query."""
    if (name := class_name(plan)) in _LEAVES:
        place, more = _LEAVES[name]
        fields = [plan.productElement(index) for index in range(plan.productArity())]
        fields[place] = False
        number = next(numbers)
        if name == "LogicalRDD":  # the other one has no rows
            fields[1] = others.get(number, fields[1])
        arguments = [session, java.option(None), java.option(None)][:more]
        return java[plan.getClass().getName()](*fields, *arguments)
    children = [
        _of_no_stream(child, session, java, others, numbers) for child in each(plan.children())
    ]
    return plan.withNewChildren(java[f"{PYTHON_UTILS}.toSeq"](children))


def leaves(node: Node) -> list[tuple[Node, dict[str, Any]]]:
    """Return what reads the rows of a plan, in order, and the columns it reads of its queue.

    By the names that they have there (SPYT, MetadataFields), with their types in Spark's JSON.
    """
    found, position = [], {inner: f"${name}" for name, inner in POSITION.items()}
    for leaf in each(node.jvm.collectLeaves()):
        fields = json.loads(leaf.schema().json())["fields"]
        columns = {f["metadata"].get("original_name", f["name"]): f["type"] for f in fields}
        found.append((Node(leaf), {position.get(n, n): kind for n, kind in columns.items()}))
    return found


def selected_rdd(rows: DataFrame, leaf: Node, rowsets: Sequence[Any], java: Java) -> Any:
    """Return selected rows of a queue as SPYT makes Spark's rows of those it has pulled.

    ``rowsets`` are those of the Java client, with all columns that ``leaf`` reads (YtQueueRDD).
    """
    context, tag = rows._jdf.sparkSession().sparkContext(), java["scala.reflect.ClassTag.AnyRef"]()
    if not rowsets:
        return context.emptyRDD(tag)
    found = java["java.util.ArrayList"]()
    for rowset in rowsets:
        found.addAll(rowset.getRows())
    joined = java[f"{_ROWS}.UnversionedRowset"](rowsets[0].getSchema(), found)
    deserializer = java[_DESERIALIZER](leaf.jvm.schema())
    made = deserializer.deserializeQueueRowsetWithServiceColumns(
        java[f"{_ROWS}.QueueRowset"](joined, 0)
    )
    return context.parallelize(made.toList(), 1, tag)
