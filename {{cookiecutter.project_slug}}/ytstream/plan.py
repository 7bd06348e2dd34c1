"""The analysed plan of transform(), read through py4j: its operators, and the queues it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

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

    def queues(self) -> list[str | None]:
        """Return the queue of each source below, None for a stream that is none of ours."""
        above = (n for n in self.walk() if any(child.name in SOURCES for child in n.children))
        marks = [str(n.jvm.name()) if n.name == "CollectMetrics" else "" for n in above]
        ours = observed_name("")
        return [mark.removeprefix(ours) if mark.startswith(ours) else None for mark in marks]


def analysed(rows: DataFrame) -> Node:
    """Return the topmost operator of the analysed plan."""
    return Node(rows._jdf.queryExecution().analyzed())


def each(sequence: Any) -> Iterator[Any]:
    """Yield the items of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))


def class_name(node: Any) -> str:
    """Return the name of the class of an operator or an expression."""
    return str(node.getClass().getSimpleName())
