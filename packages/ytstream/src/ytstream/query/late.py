"""The rows of a micro-batch that its watermark leaves out, where Spark counts fewer.

Spark drops late rows after the rows of one group and one task have become one
(StatefulAggregationStrategy, planStreamingAggregation), and counts them there: 979 late rows of one
day and one sensor were 50. So a batch in which Spark has dropped any is read once more, up to the
grouping, and its rows are counted. The rows of a queue do not change.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..connector import Java, Node, analysed_by, late_watermark, metric, of_no_stream

#: Of each operator with state (Spark, StateStoreWriter).
_DROPPED = "numRowsDroppedByWatermark"


def late_rows(rows: DataFrame, execution: Any, java: Java) -> int:
    """Return how many rows of the batch ``rows`` lay behind its watermark.

    A row that belongs to several windows counts in each that was closed. Below a CTE the number is
    Spark's own: its plan stands elsewhere.
    """
    dropped = metric(execution, _DROPPED)
    watermark = late_watermark(execution, _DROPPED) if dropped else None
    found = list(analysed_by(execution).walk())
    if watermark is None or any(node.name == "CTERelationRef" for node in found):
        return dropped
    # From the one nearest to the queues: what a later one groups are no rows of theirs.
    for node in reversed(found):
        if (column := _time_of(node)) is not None:
            return max(dropped, _counted(rows, node, column, watermark, java))
    return dropped


def _time_of(node: Node) -> int | None:
    """Return the column of a watermark by which an operator groups; None for others."""
    groups = node.groups if node.name == "Aggregate" else []
    return next((group.column for group in groups if group.has_watermark), None)


def _counted(rows: DataFrame, grouping: Node, column: int, watermark: int, java: Java) -> int:
    """Return how many rows that are grouped are not after the watermark, in milliseconds."""
    (arriving,) = grouping.children
    place = arriving.ids.index(column)
    again = of_no_stream(rows, arriving, java)
    is_window = again.schema.fields[place].dataType.typeName() == "struct"
    named = again.toDF(*(f"c{index}" for index in range(len(again.columns))))
    # As Spark's own condition of it (WatermarkSupport.watermarkExpression).
    time = F.col(f"c{place}.end" if is_window else f"c{place}")
    return named.filter(time <= F.timestamp_millis(F.lit(watermark))).count()
