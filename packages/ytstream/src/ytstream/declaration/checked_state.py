"""The user's function of the state, as Spark's Python workers call it.

A state that does not fit its schema ends the job. Spark stores null for a value of another type,
and says nothing (EvaluatePython.makeFromJava). So the state is verified after each call.

A worker does not list Spark's own archive for each task. At its start Spark asks Python's importers
to forget what they know (setup_spark_files; not Spark 4.2, SPARK-54744), and up to Python 3.12
those of an archive list it again at once (CPython, gh-103200): 42 of 146 processor seconds of the
example's workers for a million rows. Python makes a new importer when it needs one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from ..connector.pyspark_internals import state_verifier

StateFunction = TypeVar("StateFunction", bound=Callable[..., Any])
"""As Spark calls it: the key, the frames of its rows, and its state."""


def checked_state(function: StateFunction) -> StateFunction:
    """Wrap the function that you pass to applyInPandasWithState().

    Args:
        function: takes a key, the frames of its rows, and the state

    Returns:
        a function that raises TypeError if yours sets a state that does not fit STATE
    """
    # Python workers get functions of functions whole, so they need nothing of this runtime.
    name = getattr(function, "__name__", type(function).__name__)
    verify_type = state_verifier()

    def verify(state: Any) -> None:
        from pyspark.errors import PySparkException

        if not state.exists:
            return
        try:
            verify_type(state)
        except PySparkException as error:
            raise TypeError(f"{name}() has set a state that does not fit: {error}") from None

    def followed(rows: Iterator[Any], state: Any) -> Iterator[Any]:
        yield from rows
        verify(state)

    def run(key: Any, frames: Any, state: Any) -> Any:
        for path in [path for path in sys.path_importer_cache if "/pyspark.zip" in path]:
            del sys.path_importer_cache[path]
        rows = function(key, frames, state)
        if isinstance(rows, Iterator):  # a generator has not begun yet
            return followed(rows, state)
        verify(state)
        return rows

    run.__name__ = f"{_PREFIX}{name}"  # Spark's plan shows it
    return cast(StateFunction, run)


_PREFIX = "checked_state of "


def is_checked(name: str) -> bool:
    """Return whether a function that Spark's plan shows under this name is a checked one."""
    return name.startswith(_PREFIX)
