"""From an expression to a function of a row, with its type worked out beforehand.

A row is a list of Python values; null is None. Unlike SQL, YT's query language orders null before
everything and holds it equal to itself; arithmetic on null gives null (documentation, "query
language", null values).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..core.errors import generic, not_supported
from ..rows import wire
from . import aggregates, functions, like
from .ast import Binary, Call, Case, Cast, Expression, In, Like, Literal, Name, Row, Unary
from .conversions import cast
from .typed import (
    COMPARABLE,
    INTEGERS,
    NUMBERS,
    Kinds,
    Typed,
    common,
    mismatch,
    nullable,
    wrapped,
)


@dataclass(frozen=True)
class Scope:
    """The meaning of names: `names` are columns, `known` whole expressions that have been computed
    already, `aggregates` collects calls of aggregate functions if those are allowed here."""

    names: dict[str, Typed]
    known: dict[Expression, Typed]
    aliases: dict[str, Expression]
    aggregate: Callable[[Call], Typed] | None = None
    ambiguous: frozenset[str] = frozenset()


def compile(expression: Expression, scope: Scope) -> Typed:
    """Compile an expression. Raises YtError for an unknown name, wrong types, or no support."""
    if expression in scope.known:
        return scope.known[expression]
    match expression:
        case Literal(value, kind, flexible):
            return Typed(kind, lambda row: value, flexible)
        case Name(name):
            return _name(name, scope)
        case Unary(sign, operand):
            return _unary(sign, compile(operand, scope))
        case Binary("and" | "or" as word, left, right):
            return _logical(word, compile(left, scope), compile(right, scope))
        case Binary(sign, left, right) if sign in _COMPARE:
            return _comparison(sign, left, right, scope)
        case Binary(sign, left, right):
            return _arithmetic(sign, compile(left, scope), compile(right, scope))
        case In(operand, options):
            return _in(operand, options, scope)
        case Call():
            return _call(expression, scope)
        case Like():
            return _like(expression, scope)
        case Case():
            return _case(expression, scope)
        case Cast(operand, type_):
            return cast(compile(operand, scope), type_)
        case Row():
            raise generic("A tuple can only be compared")


def require_boolean(
    expression: Expression | None, scope: Scope, clause: str = "WHERE-clause"
) -> Typed | None:
    """Compile a condition; None for none. Raises YtError when it is not boolean."""
    if expression is None:
        return None
    condition = compile(expression, scope)
    if condition.kind not in (wire.BOOLEAN, wire.NULL):
        raise generic(f"{clause} is not a boolean expression", type=wire.TYPE_NAMES[condition.kind])
    return condition


def _name(name: str, scope: Scope) -> Typed:
    if name in scope.ambiguous:
        raise generic(f'Column "{name}" occurs both in main and joined tables')
    if name in scope.names:
        return scope.names[name]
    if name in scope.aliases:
        remaining = {other: e for other, e in scope.aliases.items() if other != name}
        inner = replace(scope, aliases=remaining)
        return compile(scope.aliases[name], inner)
    raise generic(f'Undefined reference "{name}"')


# Comparison


def _less(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is None and right is not None
    return bool(left < right)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": _less,
    ">": lambda left, right: _less(right, left),
    "<=": lambda left, right: not _less(right, left),
    ">=": lambda left, right: not _less(left, right),
}


def sort_key(value: Any) -> tuple[bool, Any]:
    """Return the key that orders values of one type, null first."""
    return (value is not None, 0 if value is None else value)


def _comparison(sign: str, left: Expression, right: Expression, scope: Scope) -> Typed:
    a, b = _operand(left, scope), _operand(right, scope)
    _check_comparable(sign, a, b)
    compare = _COMPARE[sign]
    if len(a) == 1:
        first, second = a[0].evaluate, b[0].evaluate
        return Typed(wire.BOOLEAN, lambda row: compare(first(row), second(row)))
    return Typed(wire.BOOLEAN, lambda row: compare(_tuple(a, row), _tuple(b, row)))


def _operand(expression: Expression, scope: Scope) -> list[Typed]:
    items = expression.items if isinstance(expression, Row) else (expression,)
    return [compile(item, scope) for item in items]


def _tuple(items: list[Typed], row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(sort_key(item.evaluate(row)) for item in items)


def _check_comparable(sign: str, left: list[Typed], right: list[Typed]) -> None:
    if len(left) != len(right):
        raise generic(f"Tuples of {len(left)} and {len(right)} items cannot be compared")
    for a, b in zip(left, right, strict=True):
        if a.kind in INTEGERS and b.kind in INTEGERS:
            continue
        if common(sign, a, b) not in (*COMPARABLE, wire.NULL):
            raise mismatch(sign, a, b)


def _in(operand: Expression, options: tuple[Expression, ...], scope: Scope) -> Typed:
    left = _operand(operand, scope)
    allowed = set()
    for option in options:
        right = _operand(option, scope)
        items = option.items if isinstance(option, Row) else (option,)
        if not all(isinstance(item, Literal) for item in items):
            raise generic("Expected constants in the right part of IN")
        _check_comparable("IN", left, right)
        allowed.add(_tuple(right, ()))
    return Typed(wire.BOOLEAN, lambda row: _tuple(left, row) in allowed)


# Logic


def _logical(word: str, left: Typed, right: Typed) -> Typed:
    for side in (left, right):
        if side.kind not in (wire.BOOLEAN, wire.NULL):
            raise mismatch(word.upper(), left, right)
    a, b = left.evaluate, right.evaluate
    decisive: bool = word == "or"

    def evaluate(row: Sequence[Any]) -> bool | None:
        first = a(row)
        if first == decisive:
            return decisive
        second = b(row)
        if second == decisive:
            return decisive
        return None if first is None or second is None else not decisive

    return Typed(wire.BOOLEAN, evaluate)


def _unary(sign: str, operand: Typed) -> Typed:
    compute = operand.evaluate
    wanted = {"not": (wire.BOOLEAN,), "-": NUMBERS, "~": INTEGERS}[sign]
    if operand.kind not in (*wanted, wire.NULL):
        raise mismatch(sign.upper(), operand)
    operators: dict[str, Callable[[Any], Any]] = {
        "not": operator.not_,
        "-": operator.neg,
        "~": operator.invert,
    }
    apply = operators[sign]
    kind = operand.kind
    return Typed(kind, nullable(lambda value: wrapped(kind, apply(value)), compute))


# Arithmetic


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, float) or isinstance(right, float):
        return left / right if right else left * float("inf") if left else float("nan")
    if right == 0:
        raise generic("Division by zero")
    quotient = abs(left) // abs(right)  # towards zero, as the machine does
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: int, right: int) -> int:
    return left - int(_divide(left, right)) * right


_ARITHMETIC: dict[str, tuple[Kinds, Callable[[Any, Any], Any]]] = {
    "+": (NUMBERS, operator.add),
    "-": (NUMBERS, operator.sub),
    "*": (NUMBERS, operator.mul),
    "/": (NUMBERS, _divide),
    "%": (INTEGERS, _modulo),
    "|": (INTEGERS, operator.or_),
    "&": (INTEGERS, operator.and_),
    "<<": (INTEGERS, lambda left, right: left << (right & 63)),
    ">>": (INTEGERS, lambda left, right: left >> (right & 63)),
    "||": ((wire.STRING,), operator.add),
}


def _arithmetic(sign: str, left: Typed, right: Typed) -> Typed:
    allowed, apply = _ARITHMETIC[sign]
    kind = common(sign, left, right)
    if kind not in (*allowed, wire.NULL):
        raise mismatch(sign, left, right)
    return Typed(
        kind,
        nullable(lambda a, b: wrapped(kind, apply(a, b)), left.evaluate, right.evaluate),
        left.flexible and right.flexible,
    )


# Patterns and cases


def _like(expression: Like, scope: Scope) -> Typed:
    escape = Literal(b"\\", wire.STRING) if expression.escape is None else expression.escape
    parts = [compile(part, scope) for part in (expression.text, expression.pattern, escape)]
    word = "ILIKE" if expression.insensitive else "LIKE"
    if any(part.kind not in (wire.STRING, wire.NULL) for part in parts):
        raise mismatch(word, *parts)
    matches = partial(like.matches, insensitive=expression.insensitive)
    return Typed(wire.BOOLEAN, nullable(matches, *(part.evaluate for part in parts)))


def _case(expression: Case, scope: Scope) -> Typed:
    """Return the result of the first branch that holds; null when none does and there is no ELSE.

    A null operand equals a null value, as everywhere.
    """
    conditions = []
    for condition, _ in expression.branches:
        if expression.operand is not None:
            conditions.append(_comparison("=", expression.operand, condition, scope))
        else:
            conditions.append(_boolean(compile(condition, scope)))
    results = [compile(result, scope) for _, result in expression.branches]
    default = compile(expression.default or Literal(None, wire.NULL), scope)
    kind = default.kind
    for result in results:
        kind = common("CASE", result, Typed(kind, default.evaluate, default.flexible))
    branches = [
        (condition.evaluate, result.evaluate)
        for condition, result in zip(conditions, results, strict=True)
    ]

    def evaluate(row: Sequence[Any]) -> Any:
        for condition, result in branches:
            if condition(row):
                return result(row)
        return default.evaluate(row)

    return Typed(kind, evaluate)


def _boolean(condition: Typed) -> Typed:
    if condition.kind not in (wire.BOOLEAN, wire.NULL):
        raise mismatch("CASE", condition)
    return condition


def _call(call: Call, scope: Scope) -> Typed:
    if call.name in aggregates.NAMES:
        if scope.aggregate is None:
            raise generic(f'Misuse of aggregate function "{call.name}"')
        return scope.aggregate(call)
    if call.name not in functions.NAMES:
        raise not_supported(f'function "{call.name}" in select_rows')
    return functions.call(call.name, [compile(argument, scope) for argument in call.arguments])
