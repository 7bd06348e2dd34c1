"""The analysed plan of transform(), read through py4j: its operators and what they tell of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .connector import analysed_plan, class_name, each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCES = ("StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation")


def observed_name(queue: str) -> str:
    """Return the name under which the plan observes which rows of ``queue`` it reads."""
    return f"ytstream:{queue}"


@dataclass(frozen=True)
class Node:
    """An operator of a plan. Below a reference to a CTE is the CTE, once for each reference."""

    jvm: Any
    #: The plans of the CTEs that are defined above.
    ctes: Mapping[int, Any] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """The name of the operator's class."""
        return class_name(self.jvm)

    @cached_property
    def children(self) -> tuple[Node, ...]:
        """The operators whose rows this one takes. A CTE that nothing refers to is none of them."""
        if self.name == "WithCTE":
            defined = {cte.id(): cte.child() for cte in each(self.jvm.cteDefs())}
            return (Node(self.jvm.plan(), {**self.ctes, **defined}),)
        if self.name == "CTERelationRef":
            return (Node(self.ctes[self.jvm.cteId()], self.ctes),)
        return tuple(Node(child, self.ctes) for child in each(self.jvm.children()))

    @cached_property
    def columns(self) -> list[tuple[int, str]]:
        """The columns that come out, in order: the id of the expression, and the name."""
        return [(column.exprId().id(), str(column.name())) for column in each(self.jvm.output())]

    @property
    def ids(self) -> list[int]:
        """The ids of the columns that come out, in order."""
        return [number for number, _ in self.columns]

    @property
    def is_streaming(self) -> bool:
        """Whether rows of a stream are among its rows."""
        return bool(self.jvm.isStreaming())

    def walk(self) -> Iterator[Node]:
        """Yield this operator and all below it, those above others first."""
        pending = [self]
        while pending:
            yield (node := pending.pop())
            pending += reversed(node.children)

    def sources(self) -> list[tuple[str | None, list[int]]]:
        """Return the queue and the ids of each source below; None for a stream that is not ours."""
        ours, found = observed_name(""), []
        for node in self.walk():
            mark = str(node.jvm.name()) if node.name == "CollectMetrics" else ""
            queue = mark.removeprefix(ours) if mark.startswith(ours) else None
            found += [(queue, child.ids) for child in node.children if child.name in SOURCES]
        return found

    def queues(self) -> list[str | None]:
        """Return the queue of each source below, None for a stream that is not ours."""
        return [queue for queue, _ in self.sources()]


def analysed(rows: DataFrame) -> Node:
    """Return the topmost operator of the analysed plan."""
    return Node(analysed_plan(rows))


#: Operators that choose or combine rows of one batch, or remember rows of earlier ones.
_STATEFUL = (
    "Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "GlobalLimit",
    "LocalLimit", "Tail", "Sample", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState",
    "TransformWithState", "TransformWithStateInPandas", "TransformWithStateInPySpark",
)  # fmt: skip


def stateful_operator(rows: DataFrame) -> str | None:
    """Return the name of an operator over a stream that needs state; None without one."""
    for node in analysed(rows).walk():
        if node.is_streaming and node.name in _STATEFUL:
            return node.name
        if node.name == "Join" and all(child.is_streaming for child in node.children):
            return "Join of streams"
    return None


def is_unique_by(rows: DataFrame, key: Sequence[str]) -> bool:
    """Return whether the plan shows that no two rows of a batch have the same ``key``.

    It does for the rows of one aggregation whose groups are told apart by key columns alone.
    """
    node = analysed(rows)
    wanted: set[int | None] = {number for number, name in node.columns if name in key}
    while node.name != "Aggregate":
        if node.name not in _ROWS_PASS or len(node.children) != 1:
            return False
        if node.name == "Project":
            wanted = {_origin(node, number) for number in wanted}
        node = node.children[0]
    groups = [*each(node.jvm.groupingExpressions())]
    wanted = {_origin(node, number) for number in wanted}
    # A group by an expression has an id too, under which the output may not show it.
    ids = {g.exprId().id() if class_name(g) == "AttributeReference" else None for g in groups}
    return bool(groups) and ids <= wanted


#: Operators out of which comes at most what went in, each row once.
_ROWS_PASS = (
    "Project", "Filter", "SubqueryAlias", "View", "CollectMetrics", "EventTimeWatermark",
    "Repartition", "RepartitionByExpression", "RebalancePartitions", "Sort",
)  # fmt: skip


def _origin(node: Node, number: int | None) -> int | None:
    """Return the id below ``node`` of the column ``number``; None for one that is computed."""
    listed = node.jvm.projectList() if node.name == "Project" else node.jvm.aggregateExpressions()
    for expression in each(listed):
        if expression.exprId().id() == number and class_name(expression) == "Alias":
            child = expression.child()
            is_column = class_name(child) == "AttributeReference"
            return int(child.exprId().id()) if is_column else None
    return number


def metric(execution: Any, name: str) -> int:
    """Return the sum of a metric over the operators of a plan that was executed; 0 without any."""
    found = (node.jvm.metrics().get(name) for node in Node(execution.executedPlan()).walk())
    return sum(int(value.get().value()) for value in found if value.isDefined())
