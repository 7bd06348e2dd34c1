"""Aggregating columns: what a value with the flag makes of the value before it.

Nulls are ignored, integers wrap, texts compare by bytes, and `first` is the value of the earliest
commit. Sources: library/query/engine (udf/sum.c, builtin_function_profiler.cpp,
TSimpleAggregateCodegen); ytlib/table_client/row_merger.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import add
from struct import Struct, error
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


class NumberRows:
    """Adds to rows of numbers alone, which have no null: a row at one go."""

    def __init__(self, columns: Sequence[tuple[int, str | None]]) -> None:
        codes = [_CODES[kind] for kind, _ in columns]
        self._old = Struct("<8x" + "".join(f"8x{code}" for code in codes))
        self._new = Struct("<" + "".join(f"Q{code}" for code in codes))
        self._made = Struct("<Q" + "".join(f"Q{code}" for code in codes))
        headers = [index | kind << 16 for index, (kind, _) in enumerate(columns)]
        self._flagged = tuple(
            header | (wire.AGGREGATE << 24 if function else 0)
            for header, (_, function) in zip(headers, columns, strict=True)
        )
        self._empty: list[Any] = [len(columns), *chain.from_iterable((h, 0) for h in headers)]
        self._adds = [_ADDS[function] for _, function in columns]

    def after(self, row: bytes, update: Mapping[int, bytes]) -> bytes | None:
        """Return the stored row after an update; None if that needs a look at each value."""
        given = b"".join(update.values())
        if len(row) != self._old.size or len(given) != self._new.size:
            return None
        found = self._new.unpack(given)
        if found[::2] != self._flagged:
            return None
        made = self._empty.copy()
        values = zip(self._adds, self._old.unpack(row), found[1::2], strict=True)
        made[2::2] = [fold(old, new) for fold, old, new in values]
        with suppress(error):  # a sum that wraps
            return self._made.pack(*made)
        return None


_CODES = {wire.INT64: "q", wire.UINT64: "Q", wire.DOUBLE: "d"}
_ADDS: Mapping[str | None, Callable[[Any, Any], Any]] = {
    None: lambda _, new: new,
    "sum": add,
    "min": min,
    "max": max,
    "first": lambda old, _: old,
}


def number_rows(columns: Sequence[tuple[int, str | None]]) -> NumberRows | None:
    """Return what adds to rows with these types and functions; None unless all are numbers."""
    return NumberRows(columns) if all(kind in _CODES for kind, _ in columns) else None
