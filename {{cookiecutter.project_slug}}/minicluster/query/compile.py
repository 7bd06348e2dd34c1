"""From an expression to a function of a row, with its type worked out beforehand.

A row is a list of Python values; null is None. Unlike SQL, YT's query language orders null before
everything and holds it equal to itself; arithmetic on null gives null (documentation, "query
language", null values).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import YtError, generic, not_supported
from ..rows import wire
from ..rows.types import LogicalType
from .ast import Binary, Call, Expression, In, Literal, Name, Row, Star, Unary

Evaluate = Callable[[Sequence[Any]], Any]

_NUMBERS = (wire.INT64, wire.UINT64, wire.DOUBLE)
_INTEGERS = (wire.INT64, wire.UINT64)
_COMPARABLE = (*_NUMBERS, wire.BOOLEAN, wire.STRING)
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Typed:
    """A compiled expression: wire type (NULL for a bare null) and how to compute it."""

    kind: int
    evaluate: Evaluate
    flexible: bool = False
    logical: LogicalType | None = None
    """That of a column, when its values have names in them; a computed value has none."""

    @classmethod
    def at(cls, place: int, kind: int, logical: LogicalType | None = None) -> Typed:
        """Return a value that is in the row already."""
        return cls(kind, operator.itemgetter(place), logical=logical)


@dataclass(frozen=True)
class Scope:
    """The meaning of names: `names` are columns, `known` whole expressions that have been computed
    already, `aggregates` collects calls of aggregate functions if those are allowed here."""

    names: dict[str, Typed]
    known: dict[Expression, Typed]
    aliases: dict[str, Expression]
    aggregate: Callable[[Call], Typed] | None = None


AGGREGATES = frozenset({"sum", "min", "max", "avg", "count"})


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
        case Row():
            raise generic("A tuple can only be compared")
        case Star():
            raise generic('"*" is not an expression')


def _name(name: str, scope: Scope) -> Typed:
    if name in scope.names:
        return scope.names[name]
    if name in scope.aliases:
        remaining = {other: e for other, e in scope.aliases.items() if other != name}
        inner = Scope(scope.names, scope.known, remaining, scope.aggregate)
        return compile(scope.aliases[name], inner)
    raise generic(f'Undefined reference "{name}"')


def _mismatch(sign: str, *operands: Typed) -> YtError:
    types = [wire.TYPE_NAMES[operand.kind] for operand in operands]
    return generic(f'Type mismatch in expression "{sign}"', types=types)


def _common(sign: str, left: Typed, right: Typed) -> int:
    """Return the type both sides have, once a plain integer literal has adapted to the other."""
    if left.kind == right.kind or right.kind == wire.NULL:
        return left.kind
    if left.kind == wire.NULL or (left.flexible and right.kind in _NUMBERS):
        return right.kind
    if right.flexible and left.kind in _NUMBERS:
        return left.kind
    raise _mismatch(sign, left, right)


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
        if a.kind in _INTEGERS and b.kind in _INTEGERS:
            continue
        if _common(sign, a, b) not in (*_COMPARABLE, wire.NULL):
            raise _mismatch(sign, a, b)


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
            raise _mismatch(word.upper(), left, right)
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
    wanted = {"not": (wire.BOOLEAN,), "-": _NUMBERS, "~": _INTEGERS}[sign]
    if operand.kind not in (*wanted, wire.NULL):
        raise _mismatch(sign.upper(), operand)
    functions: dict[str, Callable[[Any], Any]] = {
        "not": operator.not_,
        "-": operator.neg,
        "~": operator.invert,
    }
    apply = functions[sign]
    kind = operand.kind
    return Typed(kind, _nullable(lambda value: _wrapped(kind, apply(value)), compute))


# Arithmetic


def _wrapped(kind: int, value: Any) -> Any:
    """Return the integer cut down to 64 bits, as machine integers overflow."""
    if kind == wire.UINT64:
        return value & _MASK
    if kind == wire.INT64:
        return (value + (1 << 63) & _MASK) - (1 << 63)
    return value


def _nullable(function: Callable[..., Any], *arguments: Evaluate) -> Evaluate:
    """Return a function that is null when any argument is."""

    def evaluate(row: Sequence[Any]) -> Any:
        values = [argument(row) for argument in arguments]
        return None if None in values else function(*values)

    return evaluate


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, float) or isinstance(right, float):
        return left / right if right else left * float("inf") if left else float("nan")
    if right == 0:
        raise generic("Division by zero")
    quotient = abs(left) // abs(right)  # towards zero, as the machine does
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: int, right: int) -> int:
    return left - int(_divide(left, right)) * right


_ARITHMETIC: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "+": (_NUMBERS, operator.add),
    "-": (_NUMBERS, operator.sub),
    "*": (_NUMBERS, operator.mul),
    "/": (_NUMBERS, _divide),
    "%": (_INTEGERS, _modulo),
    "|": (_INTEGERS, operator.or_),
    "&": (_INTEGERS, operator.and_),
    "<<": (_INTEGERS, lambda left, right: left << (right & 63)),
    ">>": (_INTEGERS, lambda left, right: left >> (right & 63)),
    "||": ((wire.STRING,), operator.add),
}


def _arithmetic(sign: str, left: Typed, right: Typed) -> Typed:
    allowed, apply = _ARITHMETIC[sign]
    kind = _common(sign, left, right)
    if kind not in (*allowed, wire.NULL):
        raise _mismatch(sign, left, right)
    return Typed(
        kind,
        _nullable(lambda a, b: _wrapped(kind, apply(a, b)), left.evaluate, right.evaluate),
        left.flexible and right.flexible,
    )


# Functions


def _cast(kind: int, convert: Callable[[Any], Any]) -> Callable[[list[Typed]], Typed]:
    def build(arguments: list[Typed]) -> Typed:
        return Typed(
            kind,
            _nullable(lambda value: _wrapped(kind, convert(value)), arguments[0].evaluate),
        )

    return build


def _strings(kind: int, function: Callable[..., Any]) -> Callable[[list[Typed]], Typed]:
    """Return a function of strings."""

    def build(arguments: list[Typed]) -> Typed:
        if any(argument.kind not in (wire.STRING, wire.NULL) for argument in arguments):
            raise _mismatch("string function", *arguments)
        return Typed(kind, _nullable(function, *(argument.evaluate for argument in arguments)))

    return build


def _is_null(arguments: list[Typed]) -> Typed:
    evaluate = arguments[0].evaluate
    return Typed(wire.BOOLEAN, lambda row: evaluate(row) is None)


def _if_null(arguments: list[Typed]) -> Typed:
    first, second = arguments[0].evaluate, arguments[1].evaluate

    def evaluate(row: Sequence[Any]) -> Any:
        value = first(row)
        return second(row) if value is None else value

    return Typed(_common("if_null", *arguments), evaluate)


def _if(arguments: list[Typed]) -> Typed:
    condition, yes, no = arguments
    if condition.kind not in (wire.BOOLEAN, wire.NULL):
        raise _mismatch("if", condition)
    return Typed(
        _common("if", yes, no),
        lambda row: yes.evaluate(row) if condition.evaluate(row) else no.evaluate(row),
    )


_FUNCTIONS: dict[str, tuple[int, Callable[[list[Typed]], Typed]]] = {
    "is_null": (1, _is_null),
    "if_null": (2, _if_null),
    "if": (3, _if),
    "int64": (1, _cast(wire.INT64, int)),
    "uint64": (1, _cast(wire.UINT64, int)),
    "double": (1, _cast(wire.DOUBLE, float)),
    "boolean": (1, _cast(wire.BOOLEAN, bool)),
    "abs": (1, lambda arguments: Typed(arguments[0].kind, _nullable(abs, arguments[0].evaluate))),
    "lower": (1, _strings(wire.STRING, bytes.lower)),
    "upper": (1, _strings(wire.STRING, bytes.upper)),
    "length": (1, _strings(wire.INT64, len)),
    "concat": (2, _strings(wire.STRING, operator.add)),
    "is_prefix": (2, _strings(wire.BOOLEAN, lambda prefix, text: text.startswith(prefix))),
    "is_substr": (2, _strings(wire.BOOLEAN, lambda part, text: part in text)),
}


def _call(call: Call, scope: Scope) -> Typed:
    if call.name in AGGREGATES:
        if scope.aggregate is None:
            raise generic(f'Misuse of aggregate function "{call.name}"')
        if len(call.arguments) != 1:
            raise generic(f'Aggregate function "{call.name}" must have exactly one argument')
        return scope.aggregate(call)
    if call.name not in _FUNCTIONS:
        raise not_supported(f'Function "{call.name}" in select_rows')
    count, build = _FUNCTIONS[call.name]
    if len(call.arguments) != count:
        raise generic(
            f'Expected {count} arguments to function "{call.name}", got {len(call.arguments)}'
        )
    return build([compile(argument, scope) for argument in call.arguments])
