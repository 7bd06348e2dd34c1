"""The rows of a micro-batch without an event time, of which Spark says nothing.

The window of a null time is null, and Spark filters such rows out before it groups (Spark,
TimeWindowing). dropDuplicatesWithinWatermark() forgets such a row at once, so that each repeat
passes. A rule of REJECT keeps them out. Without one they are counted here, so that they are not
lost without a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..connector.batch_counts import oldest_event_time
from ..connector.java import Java
from ..connector.spark_batch import of_no_stream
from ..connector.spark_plan import Node, analysed_by
from .late_rows import groupings, watermarks


@dataclass(frozen=True)
class RowsWithoutTime:
    """The rows of one micro-batch whose event time is null."""

    count: int = 0
    dropped: int = 0
    """Those that are in no output, since they are grouped by time."""


def rows_without_time(rows: DataFrame, execution: Any, java: Java) -> RowsWithoutTime:
    """Return how many rows of the batch have no event time where the watermark is set.

    Spark takes null for 1970 there (EventTimeWatermarkExec). So only a batch with so old a time is
    read once more. None are counted in a plan that cannot be read again, see late_rows().
    """
    oldest = oldest_event_time(execution, java)
    if oldest is None or oldest > 0:
        return RowsWithoutTime()
    plan = analysed_by(execution)
    if any(node.name == "CTERelationRef" for node in plan.walk()):
        return RowsWithoutTime()
    try:
        count = sum(_counted(rows, *place, java) for place in watermarks(plan))
    except AnalysisException:  # Spark says so before it reads a row
        return RowsWithoutTime()
    return RowsWithoutTime(count, count if groupings(plan) else 0)


def _counted(rows: DataFrame, watermark: Node, column: int, java: Java) -> int:
    (arriving,) = watermark.children
    again = of_no_stream(rows, arriving, java)
    named = again.toDF(*(f"c{index}" for index in range(len(again.columns))))
    return named.filter(F.col(f"c{arriving.ids.index(column)}").isNull()).count()
