"""A view in a terminal that renews itself, until Ctrl-C."""

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

SIZE = (80, 24)
"""Columns and lines of a terminal that does not say how large it is."""


def show(views: Iterable[Sequence[str]], every: float, out: TextIO = sys.stdout) -> None:
    """Show the lines of a view every so many seconds, until Ctrl-C.

    A file or a pipe gets one view after the other.
    """
    console = Console(file=out, highlight=False)
    with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as screen:
        for lines in views:
            if console.is_terminal:
                screen.update(Text("\n".join(lines)), refresh=True)
            else:
                out.write("\n".join(lines) + "\n\n")
                out.flush()
            time.sleep(every)


def cut(lines: Iterable[str], width: int) -> list[str]:
    """Return the lines, none longer than the terminal is wide."""
    return [line if len(line) <= width else line[: width - 3] + "..." for line in lines]
