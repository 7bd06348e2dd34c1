"""Memory that comes back: what removed tables held returns to the system.

Removed nodes form cycles, and the collector runs rarely here (`__main__`): so it is run when many
rows have gone, and the C library is asked to return its free pages.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from contextlib import suppress

ROWS = 10_000
"""So many rows fewer than before are worth a collection."""
SHARE = 100
"""A look at all tables comes when so many times the time that the last one took has passed."""


class Memory:
    """Watches how many rows the tables hold."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self._held = 0
        self._next_look = 0.0

    def tick(self) -> None:
        begun = time.perf_counter()
        if begun < self._next_look:
            return
        now = self._count()
        ended = time.perf_counter()
        self._next_look = ended + SHARE * (ended - begun)
        if self._held - now >= ROWS:
            give_back()
            self._held = now
        self._held = max(self._held, now)


def give_back() -> None:
    gc.collect()
    # Only glibc has it; elsewhere free pages go back by themselves, or not at all.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
