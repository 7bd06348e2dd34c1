"""Operators of a plan that drop late rows, and the columns by which they do."""

from __future__ import annotations

from dataclasses import dataclass

from .carried_rows import is_lost_at
from .spark_plan import Node

_GROUPING = ("Aggregate", "Distinct")
"""They group by columns, and drop a row by that of them which has the watermark."""
_OTHERS = (
    "Deduplicate", "DeduplicateWithinWatermark", "FlatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState", "TransformWithState", "TransformWithStateInPandas",
    "TransformWithStateInPySpark",
)  # fmt: skip
"""They drop a row by the first of its columns that has one (Spark, WatermarkSupport)."""


@dataclass(frozen=True)
class Dropper:
    """An operator that drops late rows."""

    node: Node
    time: int
    """The id of the column that says whether a row is late: a time, or a window."""

    @property
    def arriving(self) -> Node:
        """The operator whose rows it gets."""
        return self.node.children[0]


def droppers(plan: Node) -> list[Dropper]:
    """Return the operators of a plan that drop late rows."""
    found = ((node, _time(node)) for node in plan.walk() if node.is_streaming)
    return [Dropper(node, time) for node, time in found if time is not None]


def is_untraceable_at(plan: Node, mark: str) -> str:
    """Return the operator for which nobody can tell which rows are late; empty without one.

    ``mark`` is what the operator observes that has the rows of the queues.
    """
    found = droppers(plan)
    for one in found:
        if droppers(one.arriving):  # its rows are made of several
            return one.node.name
    return next(filter(None, (is_lost_at(one.arriving, mark) for one in found)), "")


def _time(node: Node) -> int | None:
    if node.name in _GROUPING:
        columns = node.groups
    else:
        columns = node.children[0].attributes if node.name in _OTHERS else []
    return next((one.column for one in columns if one.has_watermark), None)
