"""Aggregating columns: what a value with the flag makes of the value before it.

Nulls are ignored, integers wrap, texts compare by bytes, and `first` is the value of the earliest
commit. Sources: library/query/engine (udf/sum.c, builtin_function_profiler.cpp,
TSimpleAggregateCodegen); ytlib/table_client/row_merger.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import wire

FUNCTIONS = ("sum", "min", "max", "first", "xdelta")
"""Those that a column can have (client/table_client/schema.cpp, ValidateColumnSchema)."""

_NUMBERS = frozenset({wire.INT64, wire.UINT64, wire.DOUBLE})
TYPES: Mapping[str, frozenset[int]] = {
    "sum": _NUMBERS,
    "min": _NUMBERS | {wire.BOOLEAN, wire.STRING},
    "max": _NUMBERS | {wire.BOOLEAN, wire.STRING},
    "first": _NUMBERS | {wire.BOOLEAN, wire.STRING, wire.ANY},
    "xdelta": frozenset({wire.STRING}),
}
"""The wire types that each function takes (functions_builtin_registry.cpp)."""


def flagged(piece: bytes) -> bool:
    """Return whether an encoded value is to be aggregated."""
    return bool(piece[3] & wire.AGGREGATE)


def with_flag(piece: bytes) -> bytes:
    return piece[:3] + bytes([piece[3] | wire.AGGREGATE]) + piece[4:]


def without_flag(piece: bytes) -> bytes:
    return piece[:3] + bytes([piece[3] & ~wire.AGGREGATE]) + piece[4:]


def added(function: str, old: bytes | None, new: bytes) -> bytes:
    """Return the encoded value after `new`, which has the flag, has followed `old`.

    Without an old value it is the new one. It has the flag if both have.
    """
    if old is None:
        return new
    (column, kind, before), (_, other, value) = map(_decoded, (old, new))
    if other == wire.NULL:
        return old
    if kind == wire.NULL:
        return new if flagged(old) else without_flag(new)
    folded = _FOLDS[function](before, value)
    return wire.encode_value(column, kind, _wrapped(kind, folded), old[3])


def _decoded(piece: bytes) -> tuple[int, int, wire.Value]:
    return wire.values(wire.from_chunks([piece]))[0]


_FOLDS: Mapping[str, Callable[[Any, Any], Any]] = {
    "sum": lambda old, new: old + new,
    "min": min,
    "max": max,
    "first": lambda old, _: old,
}


def _wrapped(kind: int, value: Any) -> Any:
    if kind == wire.INT64:
        return (value + (1 << 63)) % (1 << 64) - (1 << 63)
    return value % (1 << 64) if kind == wire.UINT64 else value
