"""Aggregating columns: what a value with the flag makes of the value before it.

Nulls are ignored, integers wrap, texts compare by bytes, and `first` is the value of the earliest
commit. Sources: library/query/engine (udf/sum.c, builtin_function_profiler.cpp,
TSimpleAggregateCodegen); ytlib/table_client/row_merger.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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

Fold = Callable[[bytes, bytes], bytes]
"""What makes one encoded value of two that are not null."""


def flagged(piece: bytes) -> bool:
    """Return whether an encoded value is to be aggregated."""
    return piece[3] & wire.AGGREGATE != 0


def with_flag(piece: bytes) -> bytes:
    return piece[:3] + bytes([piece[3] | wire.AGGREGATE]) + piece[4:]


def without_flag(piece: bytes) -> bytes:
    """Return the value as it is stored; a client may set no other flag."""
    return piece[:3] + b"\0" + piece[4:]


def added(fold: Fold, old: bytes, new: bytes) -> bytes:
    """Return the encoded value after `new`, which has the flag, has followed `old`.

    It has the flag if both have.
    """
    if new[2] == wire.NULL:
        return old
    if old[2] == wire.NULL:
        return _instead(old, new)
    return fold(old, new)


def _sum(old: bytes, new: bytes) -> bytes:
    if old[2] == wire.DOUBLE:
        return old[:8] + wire.DOUBLES.pack(wire.decoded(old) + wire.decoded(new))
    # Of a signed number, too: 64 bits of two's complement wrap alike.
    unsigned = int.from_bytes(old[8:], "little") + int.from_bytes(new[8:], "little")
    return old[:8] + (unsigned & _64_BITS).to_bytes(8, "little")


def _min(old: bytes, new: bytes) -> bytes:
    return _instead(old, new) if wire.decoded(new) < wire.decoded(old) else old


def _max(old: bytes, new: bytes) -> bytes:
    return _instead(old, new) if wire.decoded(new) > wire.decoded(old) else old


def _instead(old: bytes, new: bytes) -> bytes:
    """Return the new value; it has the flag if both have it."""
    return new if flagged(old) else without_flag(new)


_64_BITS = (1 << 64) - 1

FOLDS: Mapping[str, Fold] = {
    "sum": _sum,
    "min": _min,
    "max": _max,
    "first": lambda old, _: old,
}
