"""The rows of an operator, each with the row of the queues that it is made of.

A user's select() drops the columns of the queue. So the operators between are made once more, with
those columns behind their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .java import PYTHON_UTILS, Java, each
from .spark_batch import of_no_stream_plan
from .spark_plan import Node, analysed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PROJECT = "org.apache.spark.sql.catalyst.plans.logical.Project"
_ALIAS = "org.apache.spark.sql.catalyst.expressions.Alias"
_PASSING = frozenset(
    (
        "Filter", "SubqueryAlias", "View", "EventTimeWatermark", "CollectMetrics", "ResolvedHint",
        "Repartition", "RepartitionByExpression", "RebalancePartitions", "Sort",
    )
)  # fmt: skip
"""Operators whose columns are those of their child, whatever it has more."""
_PASSING_ONCE = _PASSING | {"Deduplicate", "DeduplicateWithinWatermark", "LookupNode"}
"""Of a plan that is not run a second time: the same, and those that give each row as it came."""
_MULTIPLYING = frozenset(("Expand", "Generate", "Join", "Union"))
"""Operators that may make several rows of one."""
_ONE_SIDED = {"LeftSemi": 0, "LeftAnti": 0}
"""Joins that give the columns of one side only: the side."""


def is_lost_at(node: Node, mark: str, *, runs_once: bool = False) -> str:
    """Return the operator above which it is unknown what a row is made of; empty without one.

    ``mark`` is what the operator observes that has the rows of the queues. ``runs_once``: the rows
    get their columns while they are computed, and are not computed a second time.
    """
    if node.observation == mark:
        return ""
    below = [child for child in node.children if _has(child, mark)]
    passing = _PASSING_ONCE if runs_once else _PASSING
    is_carrying = node.name in passing | _MULTIPLYING | {"Project"}
    if not below or not is_carrying or (node.name == "Join" and not _keeps(node, mark)):
        return node.name
    lost = (is_lost_at(child, mark, runs_once=runs_once) for child in below)
    return next(filter(None, lost), "")


def may_multiply(node: Node, mark: str) -> bool:
    """Return whether several rows of ``node`` may be made of one row of the queues."""
    if node.observation == mark:
        return False
    below = [child for child in node.children if _has(child, mark)]
    return node.name in _MULTIPLYING or any(may_multiply(child, mark) for child in below)


def _has(node: Node, mark: str) -> bool:
    return any(each_node.observation == mark for each_node in node.walk())


def _keeps(join: Node, mark: str) -> bool:
    """Return whether a join reads the queues on one side, and gives the columns of that side."""
    sides = [index for index, child in enumerate(join.children) if _has(child, mark)]
    return len(sides) == 1 and _ONE_SIDED.get(join.join_type, sides[0]) == sides[0]


@dataclass(frozen=True)
class CarriedRows:
    """Rows whose columns are named c0, c1, ...: the operator's, and behind them those of queues."""

    rows: DataFrame
    places: dict[int, int]
    """Id of an expression -> its column."""
    origin: dict[str, int]
    """The columns of the rows of the queues, by the name that they have there."""


def carried(rows: DataFrame, node: Node, mark: str, java: Java) -> CarriedRows:
    """Return what ``node``, of the plan of the batch ``rows``, gives when it runs again."""
    plan, origin = _Carrying(mark, rows._jdf.sparkSession(), java).of(node)
    again = _frame(rows, plan, java)
    ids = [int(column.exprId().id()) for column in each(plan.output())]
    places = {number: index for index, number in reversed([*enumerate(ids)])}
    named = again.toDF(*(f"c{index}" for index in range(len(ids))))
    return CarriedRows(named, places, {str(a.name()): places[_id(a)] for a in origin})


def with_column(rows: DataFrame, mark: str, column: str, java: Java) -> DataFrame:
    """Return the rows with one more column, of the rows of the queues that they are made of.

    They are not computed a second time: the rows may be those of a stream.
    """
    plan, _ = _Carrying(mark, rows._jdf.sparkSession(), java, column).of(analysed(rows))
    names = (f"`{name}`" for name in (*rows.columns, column))
    return _frame(rows, plan, java).select(*names)


def _frame(rows: DataFrame, plan: Any, java: Java) -> DataFrame:
    made = java[f"{rows._jdf.getClass().getName()}.ofRows"](rows._jdf.sparkSession(), plan)
    return type(rows)(made, rows.sparkSession)


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


@dataclass(frozen=True)
class _Carrying:
    """Makes operators once more. Each gives its plan, and the columns of the queues in it."""

    mark: str
    session: Any
    java: Java
    only: str = ""
    """The one column to carry, in a plan that stays what it is; empty: all columns, in a plan that
    runs again."""

    def of(self, node: Node) -> tuple[Any, list[Any]]:
        """Return the operator with the columns of the rows of the queues."""
        if node.observation == self.mark:
            plan = self._again(node)
            return plan, [one for one in each(plan.output()) if self.only in ("", str(one.name()))]
        if node.name == "Union":
            return self._union(node)
        makers: dict[str, Callable[[Node, Any, list[Any]], Any]] = {
            "Project": self._project, "Expand": self._expand,
        }  # fmt: skip
        made, origin = [], list[Any]()
        for child in node.children:
            if _has(child, self.mark):
                plan, origin = self.of(child)
                made.append(plan)
            else:
                made.append(self._again(child))
        if maker := makers.get(node.name):
            return maker(node, made[0], origin), origin
        return node.jvm.withNewChildren(self._seq(made)), origin

    def _project(self, node: Node, child: Any, origin: list[Any]) -> Any:
        listed = self._with([*each(node.jvm.projectList())], origin)
        return self.java[_class(node)](self._seq(listed), child)

    def _expand(self, node: Node, child: Any, origin: list[Any]) -> Any:
        """Of a sliding window: a row for each window (Spark, TimeWindowing)."""
        output = [*each(node.jvm.output())]
        more = self._missing(output, origin)
        projections = [self._seq([*each(one), *more]) for one in each(node.jvm.projections())]
        made = self.java[_class(node)]
        return made(self._seq(projections), self._seq([*output, *more]), child)

    def _union(self, node: Node) -> tuple[Any, list[Any]]:
        """Put the columns behind those of each child, in one order: a union goes by positions."""
        project, made, count = self.java[_PROJECT], [], 0
        for child in node.children:
            plan, origin = self.of(child)
            count = len(origin)
            listed = [*each(child.jvm.output()), *(self._aliased(a) for a in origin)]
            made.append(project(self._seq(listed), plan))
        plan = node.jvm.withNewChildren(self._seq(made))
        return plan, [*each(plan.output())][-count:]

    def _aliased(self, attribute: Any) -> Any:
        """Return the column under an id of its own: a child may give it already."""
        new, empty = attribute.newInstance().exprId(), self._seq([])
        none = self.java.option(None)
        return self.java[_ALIAS](attribute, attribute.name(), new, empty, none, empty)

    def _with(self, listed: Sequence[Any], origin: Sequence[Any]) -> list[Any]:
        return [*listed, *self._missing(listed, origin)]

    def _missing(self, listed: Sequence[Any], origin: Sequence[Any]) -> list[Any]:
        known = {_id(one) for one in listed}
        return [attribute for attribute in origin if _id(attribute) not in known]

    def _again(self, node: Node) -> Any:
        return node.jvm if self.only else of_no_stream_plan(node.jvm, self.session, self.java)

    def _seq(self, items: Sequence[Any]) -> Any:
        return self.java[f"{PYTHON_UTILS}.toSeq"]([*items])


def _class(node: Node) -> str:
    return str(node.jvm.getClass().getName())
