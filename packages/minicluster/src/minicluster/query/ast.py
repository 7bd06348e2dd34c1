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


@dataclass(frozen=True)
class Like:
    text: Expression
    pattern: Expression
    escape: Expression | None
    insensitive: bool


@dataclass(frozen=True)
class Case:
    """`branches` are (condition, result); with an operand the conditions are values of it."""

    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression | None


@dataclass(frozen=True)
class Cast:
    operand: Expression
    type: str


Expression = Literal | Name | Call | Unary | Binary | Row | In | Like | Case | Cast


@dataclass(frozen=True)
class Named:
    """An expression and the name of its column, if one was given."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True)
class OrderItem:
    expression: Expression
    descending: bool


@dataclass(frozen=True)
class Join:
    """A table joined where `left`, of the tables before it, equals `right`, of itself.

    `outer` is that of `LEFT JOIN`. `predicate` says which of its rows take part.
    """

    path: str
    alias: str | None
    outer: bool
    left: tuple[Expression, ...]
    right: tuple[Expression, ...]
    predicate: Expression | None


@dataclass
class Query:
    """`projections` is None for `*`; `group_by` is None when there is no such clause."""

    path: str
    alias: str | None = None
    joins: list[Join] = field(default_factory=list)
    projections: list[Named] | None = None
    where: Expression | None = None
    group_by: list[Named] | None = None
    having: Expression | None = None
    order_by: list[OrderItem] = field(default_factory=list)
    offset: int | None = None
    limit: int | None = None
