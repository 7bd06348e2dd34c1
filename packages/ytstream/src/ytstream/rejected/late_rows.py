"""The rows of a micro-batch that its watermark leaves out, where Spark counts fewer.

Spark drops late rows after the rows of one group and one task have become one
(StatefulAggregationStrategy, planStreamingAggregation), and counts them there: 979 late rows of one
day and one sensor were 50. So a batch in which Spark has dropped any is read once more, up to the
grouping, and its rows are counted. The rows of a queue do not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..connector.batch_counts import metric
from ..connector.java import Java
from ..connector.spark_batch import of_no_stream
from ..connector.spark_plan import Node, analysed_by, late_watermark

DROPPED = "numRowsDroppedByWatermark"
"""Of each operator with state (Spark, StateStoreWriter)."""


@dataclass(frozen=True)
class LateRows:
    """The rows of one micro-batch behind its watermark."""

    count: int = 0
    watermark: int | None = None
    """The watermark, in milliseconds since 1970; None: not known."""
    newest: int | None = None
    """The time by which the newest of them is late, likewise."""


def late_rows(rows: DataFrame, execution: Any, java: Java) -> LateRows:
    """Return the rows of the batch ``rows`` that lay behind its watermark.

    A row of several windows counts in each that was closed. The number is Spark's own where the
    rows cannot be read again: above an operator that Spark runs only in a stream, and with a CTE,
    whose plan stands elsewhere.
    """
    dropped = metric(execution, DROPPED, java)
    watermark = late_watermark(execution, DROPPED) if dropped else None
    plan = analysed_by(execution)
    if watermark is None or any(node.name == "CTERelationRef" for node in plan.walk()):
        return LateRows(dropped, watermark)
    grouped = groupings(plan)
    try:
        places = grouped or watermarks(plan)
        found = [_counted(rows, *place, watermark, java) for place in places]
    except AnalysisException:  # Spark says so before it reads a row
        return LateRows(dropped, watermark)
    newest = max((each.newest for each in found if each.newest is not None), default=None)
    count = sum(each.count for each in found) if grouped else 0
    return LateRows(max(dropped, count), watermark, newest)


def groupings(node: Node) -> list[tuple[Node, int]]:
    """Return what groups rows of the queues by the time of a watermark, and the time's column.

    Rows that are grouped above another operator are not theirs.
    """
    below = [found for child in node.children for found in groupings(child)]
    is_grouping = node.name in ("Aggregate", "Distinct") and node.is_streaming
    groups = node.groups if is_grouping else []
    times = [group.column for group in groups if group.has_watermark]
    return below or [(node, time) for time in times[:1] if time is not None]


def watermarks(plan: Node) -> list[tuple[Node, int]]:
    """Return what sets a watermark, and the time's column: for operators that group no rows."""
    nodes = [node for node in plan.walk() if node.name == "EventTimeWatermark"]
    times = [(node, node.expressions[0].column) for node in nodes]
    return [(node, time) for node, time in times if time is not None]


def _counted(rows: DataFrame, grouping: Node, column: int, watermark: int, java: Java) -> LateRows:
    """Return the rows that are grouped and not after the watermark, in milliseconds."""
    (arriving,) = grouping.children
    place = arriving.ids.index(column)
    again = of_no_stream(rows, arriving, java)
    is_window = again.schema.fields[place].dataType.typeName() == "struct"
    named = again.toDF(*(f"c{index}" for index in range(len(again.columns))))
    # As Spark's own condition of it (WatermarkSupport.watermarkExpression).
    time = F.col(f"c{place}.end" if is_window else f"c{place}")
    late = named.filter(time <= F.timestamp_millis(F.lit(watermark)))
    newest = F.max(F.unix_millis(time.cast("timestamp")))
    count, last = late.agg(F.count(F.lit(1)), newest).collect()[0]
    return LateRows(count, watermark, last)
