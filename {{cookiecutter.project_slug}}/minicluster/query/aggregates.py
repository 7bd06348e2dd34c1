"""`group by`: aggregate functions, each a fold over the values of one group. Null is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import generic
from ..rows import wire
from .typed import Typed

_WRAP = 1 << 64


@dataclass(frozen=True)
class Aggregate:
    """`initial` state, `step(state, value)` for each value that is not null, `result(state)`."""

    kind: int
    argument: Typed
    initial: Any
    step: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]


def aggregate(name: str, argument: Typed) -> Aggregate:
    """Return the aggregate function. Raises YtError for a type that it does not take."""
    numbers = (wire.INT64, wire.UINT64, wire.DOUBLE)
    allowed = {
        "sum": numbers,
        "avg": numbers,
        "min": (*numbers, wire.STRING, wire.BOOLEAN),
        "max": (*numbers, wire.STRING, wire.BOOLEAN),
    }.get(name)
    if allowed and argument.kind not in allowed:
        raise generic(f'Type mismatch in expression "{name}"', type=wire.TYPE_NAMES[argument.kind])
    kind = wire.DOUBLE if name == "avg" else argument.kind
    initial, step, result = _FOLDS[name]
    if name == "sum" and kind in (wire.INT64, wire.UINT64):
        result = _signed if kind == wire.INT64 else _unsigned
    return Aggregate(kind, argument, initial, step, result)


def _signed(value: int | None) -> int | None:
    return None if value is None else (value + (1 << 63)) % _WRAP - (1 << 63)


def _unsigned(value: int | None) -> int | None:
    return None if value is None else value % _WRAP


def _same(value: Any) -> Any:
    return value


def _add(state: Any, value: Any) -> Any:
    return value if state is None else state + value


def _least(state: Any, value: Any) -> Any:
    return value if state is None or value < state else state


def _greatest(state: Any, value: Any) -> Any:
    return value if state is None or value > state else state


def _accumulate(state: tuple[float, int], value: Any) -> tuple[float, int]:
    return state[0] + value, state[1] + 1


def _mean(state: tuple[float, int]) -> float | None:
    return state[0] / state[1] if state[1] else None


_FOLDS: dict[str, tuple[Any, Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "sum": (None, _add, _same),
    "min": (None, _least, _same),
    "max": (None, _greatest, _same),
    "avg": ((0.0, 0), _accumulate, _mean),
}
