"""What the analysed plan of transform() tells of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .spark_plan import Expression, Node, analysed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCES = ("StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation")


def observed_name(queue: str) -> str:
    """Return the name under which the plan observes which rows of ``queue`` it reads."""
    return f"ytstream:{queue}"


def sources(plan: Node) -> list[tuple[str | None, list[int]]]:
    """Return the queue and the ids of each source of a plan; None for a stream that is not ours."""
    ours, found = observed_name(""), []
    for node in plan.walk():
        mark = node.observation
        queue = mark.removeprefix(ours) if mark.startswith(ours) else None
        found += [(queue, child.ids) for child in node.children if child.name in SOURCES]
    return found


def queues(plan: Node) -> list[str | None]:
    """Return the queue of each source of a plan, None for a stream that is not ours."""
    return [queue for queue, _ in sources(plan)]


_STATEFUL = (
    "Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "GlobalLimit",
    "LocalLimit", "Tail", "Sample", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState",
    "TransformWithState", "TransformWithStateInPandas", "TransformWithStateInPySpark",
)  # fmt: skip
"""Operators that choose or combine rows of one batch, or remember rows of earlier ones."""
_DEDUPLICATIONS = ("Deduplicate", "DeduplicateWithinWatermark")
"""Those of them whose state has a row for each key that came by."""


def stateful_operator(rows: DataFrame) -> str | None:
    """Return the name of an operator over a stream that needs state; None without one."""
    found = next((node.name for node in analysed(rows).walk() if _is_stateful(node)), None)
    return "Join of streams" if found == "Join" else found


def countable_states(rows: DataFrame) -> int:
    """Return how many operators with state a plan has; 0 where the rows of one cannot be counted.

    All of one kind, by what Spark counts anyway: see state_metrics.rows_after().
    """
    stateful = [node for node in analysed(rows).walk() if _is_stateful(node)]
    is_one_kind = len({node.name == "Aggregate" for node in stateful}) == 1
    return len(stateful) if is_one_kind and all(map(_is_countable, stateful)) else 0


def _is_countable(node: Node) -> bool:
    """Return whether it is a deduplication, or an aggregation that looks up each key first.

    One without a key does not, nor does one by session_window() (Spark, StateStoreRestoreExec and
    SessionWindowStateStoreRestoreExec).
    """
    if node.name != "Aggregate":
        return node.name in _DEDUPLICATIONS
    return bool(node.groups) and not any(group.is_session for group in node.groups)


def _is_stateful(node: Node) -> bool:
    if node.name == "Join":
        return all(child.is_streaming for child in node.children)
    return node.is_streaming and node.name in _STATEFUL


def is_unique_by(rows: DataFrame, key: Sequence[str]) -> bool:
    """Return whether the plan shows that no two rows of a batch have the same ``key``.

    It does for the rows of one aggregation, if each of its groups is a column of the key.
    """
    node = analysed(rows)
    wanted = [number for number, name in node.columns if name in key]
    while node.name != "Aggregate":
        if node.name not in _ROWS_PASS or len(node.children) != 1:
            return False
        if node.name == "Project":
            origins = [_same(node, number)[-1].column for number in wanted]
            wanted = [origin for origin in origins if origin is not None]
        node = node.children[0]
    shown = [value for number in wanted for value in _same(node, number)]
    groups = node.groups
    return bool(groups) and all(any(map(group.is_same, shown)) for group in groups)


_ROWS_PASS = (
    "Project", "Filter", "SubqueryAlias", "View", "CollectMetrics", "EventTimeWatermark",
    "Repartition", "RepartitionByExpression", "RebalancePartitions", "Sort", "LookupNode",
)  # fmt: skip
"""Operators out of which comes at most what went in, each row once."""


def _same(node: Node, number: int) -> list[Expression]:
    """Return what the column ``number`` of ``node`` is made of, and behind it what that widens.

    Two rows with the same value of one of them have the same value of each.
    """
    found = [node.value(number)]
    while (narrow := found[-1].widened) is not None:
        found.append(narrow)
    return found
