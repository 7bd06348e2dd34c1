"""The parts of a parsed query. Nodes are compared by value, so that a projection finds out that it
repeats an expression of `group by`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Literal:
    """A constant; `kind` is a wire type. A plain integer literal has `flexible` set: it also passes
    for uint64 and double."""

    value: int | float | bool | bytes | None
    kind: int
    flexible: bool = False


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Unary:
    operator: str
    operand: Expression


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Row:
    """Several expressions in brackets, compared one after the other."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class In:
    operand: Expression
    options: tuple[Expression, ...]


Expression = Literal | Name | Call | Unary | Binary | Row | In


@dataclass(frozen=True)
class Named:
    """An expression and the name of its column, if one was given."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True)
class OrderItem:
    expression: Expression
    descending: bool


@dataclass
class Query:
    """`projections` is None for `*`; `group_by` is None when there is no such clause."""

    path: str
    alias: str | None = None
    projections: list[Named] | None = None
    where: Expression | None = None
    group_by: list[Named] | None = None
    having: Expression | None = None
    order_by: list[OrderItem] = field(default_factory=list)
    offset: int | None = None
    limit: int | None = None
