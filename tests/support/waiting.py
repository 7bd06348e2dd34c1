"""Waiting for what other processes bring about, where there is no event to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def eventually(look: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return what ``look`` returns as soon as it is true; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"never came: {look}"
        time.sleep(0.05)
    return found
