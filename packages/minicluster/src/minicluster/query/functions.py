"""Scalar functions, by name. Their types: query/base/builtin_function_registry.cpp and
builtin_function_types.cpp."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ..core.errors import generic
from ..rows import wire
from . import dates, ypath_get
from .conversions import conversion
from .farm_hash import farm_hash
from .typed import INTEGERS, NUMBERS, Kinds, Typed, common, mismatch, nullable, wrapped

ANY: Kinds = (wire.ANY, wire.COMPOSITE)
INT64: Kinds = (wire.INT64,)
STRING: Kinds = (wire.STRING,)


@dataclass(frozen=True)
class Function:
    """A function of values: the types that each argument may have, the result's, the function.

    It is null when an argument is.
    """

    accepts: tuple[Kinds, ...]
    kind: int
    apply: Callable[..., Any]


def call(name: str, arguments: list[Typed]) -> Typed:
    """Return the call of a scalar function. Raises YtError for wrong arguments."""
    if name in _POLYMORPHIC:
        count, build = _POLYMORPHIC[name]
        _check_count(name, count, arguments)
        return build(arguments)
    function = FUNCTIONS[name]
    _check_count(name, len(function.accepts), arguments)
    for accepted, argument in zip(function.accepts, arguments, strict=True):
        _check_type(name, accepted, argument)
    return Typed(
        function.kind, nullable(function.apply, *(argument.evaluate for argument in arguments))
    )


def _check_count(name: str, count: int | None, arguments: list[Typed]) -> None:
    if count is not None and len(arguments) != count:
        raise generic(f'Expected {count} arguments to function "{name}", got {len(arguments)}')


def _check_type(name: str, accepted: Kinds, argument: Typed) -> None:
    if argument.kind in (*accepted, wire.NULL):
        return
    if argument.flexible and any(kind in NUMBERS for kind in accepted):
        return
    names = " or ".join(wire.TYPE_NAMES[kind] for kind in accepted)
    raise generic(
        f'Wrong type for argument of function "{name}": expected {names}, '
        f"got {wire.TYPE_NAMES[argument.kind]}"
    )


# Functions whose result has the type of an argument


def _is_null(arguments: list[Typed]) -> Typed:
    evaluate = arguments[0].evaluate
    return Typed(wire.BOOLEAN, lambda row: evaluate(row) is None)


def _if_null(arguments: list[Typed]) -> Typed:
    first, second = arguments[0].evaluate, arguments[1].evaluate

    def evaluate(row: Sequence[Any]) -> Any:
        value = first(row)
        return second(row) if value is None else value

    return Typed(common("if_null", *arguments), evaluate)


def _if(arguments: list[Typed]) -> Typed:
    condition, yes, no = arguments
    if condition.kind not in (wire.BOOLEAN, wire.NULL):
        raise mismatch("if", condition)
    return Typed(
        common("if", yes, no),
        lambda row: yes.evaluate(row) if condition.evaluate(row) else no.evaluate(row),
    )


def _abs(arguments: list[Typed]) -> Typed:
    (argument,) = arguments
    _check_type("abs", NUMBERS, argument)
    kind = argument.kind
    return Typed(kind, nullable(lambda value: wrapped(kind, abs(value)), argument.evaluate))


def _cast(name: str, kind: int, accepted: Kinds) -> Callable[[list[Typed]], Typed]:
    def build(arguments: list[Typed]) -> Typed:
        (argument,) = arguments
        _check_type(name, accepted, argument)
        return Typed(kind, nullable(conversion(argument.kind, kind), argument.evaluate))

    return build


def _coalesce(arguments: list[Typed]) -> Typed:
    if not arguments:
        raise generic('Function "coalesce" needs arguments')
    return reduce(lambda first, second: _if_null([first, second]), arguments)


def _farm_hash(arguments: list[Typed]) -> Typed:
    for argument in arguments:
        _check_type("farm_hash", (*INTEGERS, wire.BOOLEAN, wire.STRING), argument)
    compute = [argument.evaluate for argument in arguments]
    return Typed(wire.UINT64, lambda row: farm_hash(*(value(row) for value in compute)))


_POLYMORPHIC: dict[str, tuple[int | None, Callable[[list[Typed]], Typed]]] = {
    "coalesce": (None, _coalesce),
    "farm_hash": (None, _farm_hash),
    "is_null": (1, _is_null),
    "if_null": (2, _if_null),
    "if": (3, _if),
    "abs": (1, _abs),
    "int64": (1, _cast("int64", wire.INT64, (*NUMBERS, wire.ANY))),
    "uint64": (1, _cast("uint64", wire.UINT64, (*NUMBERS, wire.ANY))),
    "double": (1, _cast("double", wire.DOUBLE, (*NUMBERS, wire.ANY))),
    "boolean": (1, _cast("boolean", wire.BOOLEAN, (*INTEGERS, wire.BOOLEAN, wire.ANY))),
    "string": (1, _cast("string", wire.STRING, (wire.STRING, wire.ANY))),
}

# Functions of values


def _lower(text: bytes) -> bytes:
    return text.decode(errors="surrogateescape").lower().encode(errors="surrogateescape")


FUNCTIONS: dict[str, Function] = {
    "lower": Function((STRING,), wire.STRING, _lower),
    "length": Function((STRING,), wire.INT64, len),
    "concat": Function((STRING, STRING), wire.STRING, operator.add),
    "is_prefix": Function(
        (STRING, STRING), wire.BOOLEAN, lambda prefix, text: text.startswith(prefix)
    ),
    "is_substr": Function((STRING, STRING), wire.BOOLEAN, lambda part, text: part in text),
    "parse_int64": Function((STRING,), wire.INT64, conversion(wire.STRING, wire.INT64)),
    "parse_uint64": Function((STRING,), wire.UINT64, conversion(wire.STRING, wire.UINT64)),
    "parse_double": Function((STRING,), wire.DOUBLE, conversion(wire.STRING, wire.DOUBLE)),
    "format_timestamp": Function((INT64, STRING), wire.STRING, dates.formatted),
    "format_timestamp_tz": Function((INT64, STRING, STRING), wire.STRING, dates.formatted_in_zone),
    **{
        f"timestamp_floor_{unit}": Function((INT64,), wire.INT64, dates.floor(unit))
        for unit in dates.UNITS
    },
    **{
        f"timestamp_floor_{unit}_tz": Function(
            (INT64, STRING), wire.INT64, dates.floor_in_zone(unit)
        )
        for unit in dates.UNITS
    },
    **{
        f"try_get_{name}": Function((ANY, STRING), kind, ypath_get.getter(name))
        for name, kind in ypath_get.TYPES.items()
    },
    **{
        f"get_{name}": Function((ANY, STRING), kind, ypath_get.strict_getter(name))
        for name, kind in ypath_get.TYPES.items()
    },
}
NAMES = frozenset({*FUNCTIONS, *_POLYMORPHIC})
