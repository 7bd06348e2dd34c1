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
    grouping = next((node for node in reversed(found) if node.name == "Aggregate"), None)
    if watermark is None or grouping is None or any(n.name == "CTERelationRef" for n in found):
        return dropped
    return max(dropped, _counted(rows, grouping, watermark, java))


def _counted(rows: DataFrame, grouping: Node, watermark: int, java: Java) -> int:
    """Return how many rows that are grouped are not after the watermark, in milliseconds."""
    (arriving,) = grouping.children
    times = [group.column for group in grouping.groups if group.has_watermark]
    if not times or times[0] not in arriving.ids:
        return 0
    place = arriving.ids.index(times[0])
    again = of_no_stream(rows, arriving, java)
    is_window = again.schema.fields[place].dataType.typeName() == "struct"
    named = again.toDF(*(f"c{index}" for index in range(len(again.columns))))
    # As Spark's own condition of it (WatermarkSupport.watermarkExpression).
    time = F.col(f"c{place}.end" if is_window else f"c{place}")
    return named.filter(time <= F.timestamp_millis(F.lit(watermark))).count()
