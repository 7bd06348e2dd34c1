"""The wait of all tests for what other processes and threads bring about, without an event."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def eventually(
    look: Callable[[], Any],
    seconds: float = 60.0,
    *,
    what: str = "",
    meanwhile: Callable[[], bool] = lambda: True,
    said: Callable[[], str] = lambda: "",
    error: Callable[[str], BaseException] = AssertionError,
    pause: float = 0.05,
) -> Any:
    """Return what ``look`` returns as soon as it is true.

    Raises ``error`` after so many seconds, or once ``meanwhile`` does not hold any more. Its text
    names ``what`` was waited for and ends with what was ``said``.
    """
    deadline = time.monotonic() + seconds
    while True:
        is_possible = meanwhile()  # before the look: what ends may bring it about by its end
        if found := look():
            return found
        if not is_possible:
            raise error(f"cannot come any more: {what or look}\n{said()}".rstrip())
        if time.monotonic() > deadline:
            raise error(f"not in {seconds:.0f} s: {what or look}\n{said()}".rstrip())
        time.sleep(pause)
