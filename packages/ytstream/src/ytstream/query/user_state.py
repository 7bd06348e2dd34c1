"""A state that does not fit its schema ends the job.

Spark stores null for a value of another type, and says nothing (EvaluatePython.makeFromJava): 5.0
in a bigint is lost. So the state is verified after each call of the user's function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql.pandas.group_ops import PandasGroupedOpsMixin
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import _make_type_verifier

#: As Spark calls it: the key, the frames of its rows, and its state.
StateFunction = Callable[[Any, Any, GroupState], Any]


@contextmanager
def verified_states() -> Iterator[None]:
    """Let applyInPandasWithState() take each function as verified() returns it."""
    whole: Callable[..., Any] = PandasGroupedOpsMixin.applyInPandasWithState

    def applied(self: Any, func: StateFunction, *more: Any, **named: Any) -> Any:
        return whole(self, verified(func), *more, **named)

    mine = sys.modules[__name__]
    PandasGroupedOpsMixin.applyInPandasWithState = applied  # type: ignore[method-assign]
    # Whole, not by name: so Python workers need nothing of this runtime.
    cloudpickle.register_pickle_by_value(mine)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(mine)  # type: ignore[no-untyped-call]
        PandasGroupedOpsMixin.applyInPandasWithState = whole  # type: ignore[method-assign]


def verified(function: StateFunction) -> StateFunction:
    """Return the function; it raises TypeError when the state that it has set does not fit."""
    verifiers: list[Callable[[Any], None]] = []  # made once for each task of Spark's

    def verify(state: GroupState) -> None:
        if not state.exists:
            return
        if not verifiers:
            verifiers.append(_make_type_verifier(state._value_schema))
        try:
            verifiers[0](state.get)
        except PySparkException as error:
            name = getattr(function, "__name__", "the state function")
            raise TypeError(f"{name}() has set a state that does not fit: {error}") from None

    def followed(rows: Iterator[Any], state: GroupState) -> Iterator[Any]:
        yield from rows
        verify(state)

    def run(key: Any, frames: Any, state: GroupState) -> Any:
        rows = function(key, frames, state)
        if isinstance(rows, Iterator):  # a generator has not begun yet
            return followed(rows, state)
        verify(state)
        return rows

    return run
