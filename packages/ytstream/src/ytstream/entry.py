"""The first lines of a command: until its imports are over, a signal ends it in one line."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

AT_A_SIGNAL: list[Callable[[], None]] = []
"""What ends at such a signal, too."""


def leave_on_signals() -> None:
    """Install handlers for SIGTERM and SIGINT that end the process at once.

    Importing Spark and SPYT takes two seconds; Python's own handlers would print a traceback.
    """

    def leave(number: int, _frame: object) -> None:
        for end in AT_A_SIGNAL:
            end()
        os.write(2, b"stopped before the start\n")
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
