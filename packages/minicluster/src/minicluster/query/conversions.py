"""From a value of one type to a value of another (query/engine/cg_routines.cpp)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from yt import yson

from ..core.errors import YtError, generic, not_supported
from ..rows import wire
from .typed import NUMBERS, Typed, wrapped

_RANGES = {wire.INT64: (-(1 << 63), 1 << 63), wire.UINT64: (0, 1 << 64)}
_INTEGER = re.compile(rb"([-+]?\d{1,20})u?")
_DOUBLE = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
TYPES = {
    "int64": wire.INT64,
    "uint64": wire.UINT64,
    "double": wire.DOUBLE,
    "bool": wire.BOOLEAN,
    "string": wire.STRING,
    "any": wire.ANY,
}
_OPTIONAL = re.compile(r"(?P<plain>\w+)(?P<mark>\?)?|optional<(?P<inner>\w+)>", re.IGNORECASE)

Convert = Callable[[Any], Any]


def cast(operand: Typed, type_: str) -> Typed:
    """Return `CAST(operand AS type)`: a type that is not optional takes no null. Raises YtError."""
    match = _OPTIONAL.fullmatch(type_.replace(" ", ""))
    kind = TYPES.get((match["plain"] or match["inner"]).lower()) if match else None
    if match is None or kind is None:
        raise not_supported(f"CAST to {type_}")
    optional = bool(match["mark"] or match["inner"])
    compute, convert = operand.evaluate, conversion(operand.kind, kind)

    def evaluate(row: Any) -> Any:
        value = compute(row)
        if value is not None:
            return convert(value)
        if not optional:
            raise generic("Encountered a null value during cast to a non-nullable type")
        return None

    return Typed(kind, evaluate)


def conversion(source: int, target: int) -> Convert:
    """Return what makes a `target` of a `source`; it raises YtError for some values.

    Raises YtError when there is no such conversion.
    """
    if source in (target, wire.NULL):
        return lambda value: value
    if source == wire.ANY:
        return lambda value: _from_any(value, target)
    if target == wire.ANY:
        return lambda value: yson.dumps(wire.to_python(source, value), yson_format="binary")
    if source == wire.STRING and target in NUMBERS:
        return lambda value: _parsed(value, target)
    if source == wire.INT64 and target == wire.STRING:
        return lambda value: str(value).encode()
    if source in NUMBERS and target in _RANGES:
        return lambda value: _integer(value, target)
    if source in NUMBERS and target == wire.DOUBLE:
        return float
    if source in _RANGES and target == wire.BOOLEAN:
        return bool
    names = wire.TYPE_NAMES
    raise not_supported(f'CAST of "{names[source]}" to "{names[target]}"')


def _integer(value: Any, kind: int) -> int:
    low, end = _RANGES[kind]
    if isinstance(value, float) and not low <= value < end:  # nan as well
        raise generic(f"Cannot convert {value} to {wire.TYPE_NAMES[kind]}: it is out of range")
    return int(wrapped(kind, int(value)))


def _from_any(document: bytes, kind: int) -> Any:
    found, value = wire.guess(parsed(document))
    if found == kind:
        return value
    if found in NUMBERS and kind in NUMBERS:
        return conversion(found, kind)(value)
    raise _not_converted(yson.dumps(parsed(document), yson_format="text"), "any", kind)


def parsed(document: bytes) -> Any:
    """Return a value of type any. Raises YtError."""
    try:
        return yson.loads(document, encoding=None, always_create_attributes=False)
    except (yson.YsonError, ValueError) as error:
        raise generic(f"Error parsing YSON: {error}") from None


def _parsed(text: bytes, kind: int) -> Any:
    if match := _INTEGER.fullmatch(text):
        value = int(match[1])
        low, end = _RANGES.get(kind, (value, value + 1))
        if low <= value < end:
            return float(value) if kind == wire.DOUBLE else value
    elif _DOUBLE.fullmatch(text):
        return conversion(wire.DOUBLE, kind)(float(text))
    raise _not_converted(text, "string", kind)


def _not_converted(text: bytes, source: str, kind: int) -> YtError:
    return generic(
        f'Cannot convert value "{text.decode(errors="backslashreplace")}" of type "{source}" '
        f'to "{wire.TYPE_NAMES[kind]}"'
    )
