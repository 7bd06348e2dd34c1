"""From a value of one type to a value of another (query/engine/cg_routines.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yt import yson

from ..errors import generic
from ..rows import wire
from .typed import wrapped

_INTEGER_RANGES = {wire.INT64: (-(1 << 63), 1 << 63), wire.UINT64: (0, 1 << 64)}


def conversion(source: int, target: int) -> Callable[[Any], Any]:
    """Return what makes a `target` of a `source`. The function raises YtError for some values."""
    if source == wire.ANY:
        return lambda value: from_any(value, target)
    if target in _INTEGER_RANGES:
        return lambda value: _integer(value, target)
    return {wire.DOUBLE: float, wire.BOOLEAN: bool}.get(target, lambda value: value)


def _integer(value: Any, kind: int) -> int:
    low, end = _INTEGER_RANGES[kind]
    if isinstance(value, float) and not low <= value < end:  # nan as well
        raise generic(f"Cannot convert {value} to {wire.TYPE_NAMES[kind]}: it is out of range")
    return int(wrapped(kind, int(value)))


def from_any(document: bytes, kind: int) -> Any:
    """Return the value in a column of type any as that type. Raises YtError for another type."""
    found, value = wire.guess(yson.loads(document, encoding=None, always_create_attributes=False))
    numeric = (*_INTEGER_RANGES, wire.DOUBLE)
    if found == kind:
        return value
    if found in numeric and kind in numeric:
        return conversion(found, kind)(value)
    text = yson.dumps(yson.loads(document, encoding=None), yson_format="text")
    raise generic(
        f'Cannot convert value "{text.decode(errors="backslashreplace")}" of type "any" '
        f'to "{wire.TYPE_NAMES[kind]}"'
    )
