"""Expressions with their types, and the rules of types that all kinds of expressions share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import YtError, generic
from ..rows import wire
from ..rows.types import LogicalType

Evaluate = Callable[[Sequence[Any]], Any]
Kinds = tuple[int, ...]

INTEGERS: Kinds = (wire.INT64, wire.UINT64)
NUMBERS: Kinds = (*INTEGERS, wire.DOUBLE)
COMPARABLE: Kinds = (*NUMBERS, wire.BOOLEAN, wire.STRING)
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


def mismatch(sign: str, *operands: Typed) -> YtError:
    types = [wire.TYPE_NAMES[operand.kind] for operand in operands]
    return generic(f'Type mismatch in expression "{sign}"', types=types)


def common(sign: str, left: Typed, right: Typed) -> int:
    """Return the type both sides have, once a plain integer literal has adapted to the other."""
    if left.kind == right.kind or right.kind == wire.NULL:
        return left.kind
    if left.kind == wire.NULL or (left.flexible and right.kind in NUMBERS):
        return right.kind
    if right.flexible and left.kind in NUMBERS:
        return left.kind
    raise mismatch(sign, left, right)


def wrapped(kind: int, value: Any) -> Any:
    """Return the integer cut down to 64 bits, as machine integers overflow."""
    if kind == wire.UINT64:
        return value & _MASK
    if kind == wire.INT64:
        return (value + (1 << 63) & _MASK) - (1 << 63)
    return value


def nullable(function: Callable[..., Any], *arguments: Evaluate) -> Evaluate:
    """Return a function that is null when any argument is."""

    def evaluate(row: Sequence[Any]) -> Any:
        values = [argument(row) for argument in arguments]
        return None if None in values else function(*values)

    return evaluate
