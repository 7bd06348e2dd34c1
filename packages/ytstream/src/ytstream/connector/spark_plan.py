"""Plans of Spark: their operators, their expressions, and what an execution has counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .java import class_name, each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


_INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
"""Spark's integers, and their bits."""
_WATERMARK = "spark.watermarkDelayMs"
"""In the metadata of such columns (Spark, EventTimeWatermark.delayKey)."""
_SESSION = "spark.sessionWindow"
"""Likewise (Spark, SessionWindow.marker)."""


@dataclass(frozen=True)
class Expression:
    """An expression of an operator."""

    jvm: Any

    @cached_property
    def name(self) -> str:
        """The name of the expression's class."""
        return class_name(self.jvm)

    @property
    def function(self) -> str:
        """The name that a user knows."""
        return str(self.jvm.prettyName())

    @cached_property
    def children(self) -> list[Expression]:
        """The expressions that this one takes."""
        return [Expression(child) for child in each(self.jvm.children())]

    @property
    def column(self) -> int | None:
        """The id of the column that this is; None for one that is computed."""
        return int(self.jvm.exprId().id()) if self.name == "AttributeReference" else None

    @property
    def has_watermark(self) -> bool:
        """Whether it is a column of the event time that a watermark is of, or of its window."""
        return self.column is not None and bool(self.jvm.metadata().contains(_WATERMARK))

    @property
    def is_session(self) -> bool:
        """Whether it is a column of session_window()."""
        return self.column is not None and bool(self.jvm.metadata().contains(_SESSION))

    @property
    def type(self) -> DataType:
        """The type of the expression's value."""
        from pyspark.sql.types import _parse_datatype_json_string

        return _parse_datatype_json_string(self.jvm.dataType().json())

    @property
    def sql(self) -> str:
        """The expression as SQL."""
        return str(self.jvm.sql())

    @property
    def literal(self) -> str:
        """The value of a literal, as text."""
        return str(self.jvm.value())

    @property
    def is_deterministic(self) -> bool:
        """Whether Spark takes its value for the same each time; it does so of a clock."""
        return bool(self.jvm.deterministic())

    @property
    def widened(self) -> Expression | None:
        """The integer that this cast makes a wider one; None for another expression."""
        if self.name != "Cast":
            return None
        (narrow,) = self.children
        bits = [_INTEGERS.get(str(one.jvm.dataType().typeName()), 0) for one in (narrow, self)]
        return narrow if 0 < bits[0] <= bits[1] else None

    def is_same(self, other: Expression) -> bool:
        """Return whether both have the same value in each row, whatever their names are."""
        return bool(self.jvm.semanticEquals(other.jvm))

    def contains(self, pattern: Any) -> bool:
        """Return whether a pattern is in it, see clock_pattern()."""
        return bool(self.jvm.containsPattern(pattern))


@dataclass(frozen=True)
class Node:
    """An operator of a plan. Below a reference to a CTE is the CTE, once for each reference."""

    jvm: Any
    ctes: Mapping[int, Any] = field(default_factory=dict)
    """The plans of the CTEs that are defined above."""

    @cached_property
    def name(self) -> str:
        """The name of the operator's class."""
        return class_name(self.jvm)

    @cached_property
    def children(self) -> tuple[Node, ...]:
        """The operators whose rows this one takes. Skips an unused CTE."""
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
    def attributes(self) -> list[Expression]:
        """The columns that come out, in order."""
        return [Expression(column) for column in each(self.jvm.output())]

    @property
    def is_streaming(self) -> bool:
        """Whether rows of a stream are among its rows."""
        return bool(self.jvm.isStreaming())

    @property
    def expressions(self) -> list[Expression]:
        """The expressions of the operator itself, in order."""
        return [Expression(expression) for expression in each(self.jvm.expressions())]

    @property
    def groups(self) -> list[Expression]:
        """The expressions that an aggregation groups by; SELECT DISTINCT does by all columns."""
        is_distinct = self.name == "Distinct"
        groups = self.jvm.output() if is_distinct else self.jvm.groupingExpressions()
        return [Expression(group) for group in each(groups)]

    @property
    def subqueries(self) -> list[Node]:
        """The plans of the subqueries in its expressions."""
        return [Node(plan, self.ctes) for plan in each(self.jvm.subqueries())]

    @property
    def join_type(self) -> str:
        """The type of a join."""
        return str(self.jvm.joinType().toString())

    @property
    def observation(self) -> str:
        """The name under which it observes its rows; empty for an operator that does not."""
        return str(self.jvm.name()) if self.name == "CollectMetrics" else ""

    @property
    def state_function(self) -> str | None:
        """The name of the function of applyInPandasWithState(); None for another operator."""
        if self.name != "FlatMapGroupsInPandasWithState":
            return None
        return str(self.jvm.functionExpr().name())

    def computed(self, number: int) -> Expression | None:
        """Return what a Project or Aggregate computes a column from; None if it passes it on."""
        value = self.value(number)
        return None if value.column == number else value

    def value(self, number: int) -> Expression:
        """Return what a Project or Aggregate makes a column of, without its name."""
        is_project = self.name == "Project"
        listed = self.jvm.projectList() if is_project else self.jvm.aggregateExpressions()
        value = next(one for one in each(listed) if one.exprId().id() == number)
        if class_name(value) == "Alias":
            value = value.child()
        # A view in SQL casts each column to the type that it has.
        while class_name(value) == "Cast" and value.dataType() == value.child().dataType():
            value = value.child()
        return Expression(value)

    def walk(self) -> Iterator[Node]:
        """Yield this operator and all below it, those above others first."""
        pending = [self]
        while pending:
            yield (node := pending.pop())
            pending += reversed(node.children)


def execution_of(rows: DataFrame) -> Any:
    """Return Spark's execution of a frame (QueryExecution)."""
    return rows._jdf.queryExecution()


def analysed(rows: DataFrame) -> Node:
    """Return the topmost operator of the analysed plan of a frame."""
    return analysed_by(execution_of(rows))


def analysed_by(execution: Any) -> Node:
    """Return the topmost operator of the analysed plan of an execution."""
    return Node(execution.analyzed())


def metrics(execution: Any, names: Collection[str]) -> dict[str, int]:
    """Return the sums of metrics over the operators of a plan that was executed; 0 without any.

    In front of a metric may be the operator that it is of, and a dot.
    """
    sums = dict.fromkeys(names, 0)
    for node in Node(execution.executedPlan()).walk():
        known = node.jvm.metrics()
        for name in names:
            operator, _, of_it = name.rpartition(".")
            if operator in ("", node.name) and (value := known.get(of_it)).isDefined():
                sums[name] += int(value.get().value())
    return sums


def late_watermark(execution: Any, name: str) -> int | None:
    """Return the watermark, in milliseconds, of an operator whose metric ``name`` is not 0.

    It is that of the operator nearest to the sources; None where there is no watermark.
    """
    marks = [
        node.jvm.eventTimeWatermarkForLateEvents()
        for node in Node(execution.executedPlan()).walk()
        if (found := node.jvm.metrics().get(name)).isDefined() and int(found.get().value())
    ]
    return int(marks[-1].get()) if marks and marks[-1].isDefined() else None


def oldest_event_time(execution: Any) -> int | None:
    """Return the oldest event time that a watermark has seen, in milliseconds; None without one.

    As Spark sees it, which takes null for 0.
    """
    nodes = Node(execution.executedPlan()).walk()
    watermarks = [node.jvm for node in nodes if node.name == "EventTimeWatermarkExec"]
    return min((int(one.eventTimeStats().value().min()) for one in watermarks), default=None)


def observations(execution: Any, names: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """Return those of the named observations that an execution has made: numbers and texts."""
    metrics = execution.observedMetrics()
    found = ((name, metrics.get(name)) for name in names)
    return {name: _figures(option.get()) for name, option in found if option.isDefined()}


def _figures(row: Any) -> tuple[Any, ...]:
    return tuple(row.get(index) for index in range(row.length()))
