"""`group by`: aggregate functions, each a fold over the values of one group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import generic
from ..rows import wire
from .farm_hash import fingerprint
from .typed import COMPARABLE, NUMBERS, Evaluate, Kinds, Typed, wrapped


@dataclass(frozen=True)
class Aggregate:
    """`initial()` is the state, `step(state, value)` the next for each value that is not null."""

    kind: int
    value: Evaluate
    initial: Callable[[], Any]
    step: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]


@dataclass(frozen=True)
class _Fold:
    """The types of the arguments, and what is made of them; `kind` None is the first one's."""

    accepts: tuple[Kinds, ...]
    step: Callable[[Any, Any], Any]
    initial: Callable[[], Any] = lambda: None
    result: Callable[[Any], Any] = lambda state: state
    kind: int | None = None


def aggregate(name: str, arguments: list[Typed]) -> Aggregate:
    """Return the aggregate function of these arguments. Raises YtError."""
    fold = _FOLDS[name]
    if len(arguments) != len(fold.accepts):
        exactly = "one argument" if len(fold.accepts) == 1 else f"{len(fold.accepts)} arguments"
        raise generic(f'Aggregate function "{name}" must have exactly {exactly}')
    for accepted, argument in zip(fold.accepts, arguments, strict=True):
        if argument.kind not in accepted:
            raise generic(
                f'Type mismatch in expression "{name}"', type=wire.TYPE_NAMES[argument.kind]
            )
    kind = arguments[0].kind if fold.kind is None else fold.kind
    result = fold.result
    if name == "sum":
        result = lambda state: None if state is None else wrapped(kind, state)  # noqa: E731
    return Aggregate(kind, _value(name, arguments), fold.initial, fold.step, result)


def _value(name: str, arguments: list[Typed]) -> Evaluate:
    """Return what is folded: a value, or the values of all arguments if none is null."""
    first = arguments[0].evaluate
    if name == "cardinality":  # counts null as a value (query/engine/udf/hyperloglog.cpp)
        return lambda row: fingerprint(first(row))
    if len(arguments) == 1:
        return first
    second = arguments[1].evaluate

    def both(row: Sequence[Any]) -> tuple[Any, Any] | None:
        pair = first(row), second(row)
        return None if None in pair else pair

    return both


def _add(state: Any, value: Any) -> Any:
    return value if state is None else state + value


def _least(state: Any, value: Any) -> Any:
    return value if state is None or value < state else state


def _greatest(state: Any, value: Any) -> Any:
    return value if state is None or value > state else state


def _first(state: Any, value: Any) -> Any:
    return value if state is None else state


def _with_least(state: Any, pair: Any) -> Any:
    return pair if state is None or pair[1] < state[1] else state


def _with_greatest(state: Any, pair: Any) -> Any:
    return pair if state is None or pair[1] > state[1] else state


def _of_pair(state: Any) -> Any:
    return None if state is None else state[0]


def _accumulate(state: tuple[float, int], value: Any) -> tuple[float, int]:
    return state[0] + value, state[1] + 1


def _mean(state: tuple[float, int]) -> float | None:
    return state[0] / state[1] if state[1] else None


def _collect(state: set[int], value: int) -> set[int]:
    state.add(value)
    return state


# The server estimates the cardinality, by HyperLogLog; few values it counts exactly.
_FOLDS = {
    "sum": _Fold((NUMBERS,), _add),
    "min": _Fold((COMPARABLE,), _least),
    "max": _Fold((COMPARABLE,), _greatest),
    "avg": _Fold((NUMBERS,), _accumulate, lambda: (0.0, 0), _mean, wire.DOUBLE),
    "first": _Fold(((*COMPARABLE, wire.ANY),), _first),
    "argmin": _Fold((COMPARABLE, COMPARABLE), _with_least, result=_of_pair),
    "argmax": _Fold((COMPARABLE, COMPARABLE), _with_greatest, result=_of_pair),
    "cardinality": _Fold((COMPARABLE,), _collect, set, len, wire.UINT64),
}
NAMES = frozenset(_FOLDS)
