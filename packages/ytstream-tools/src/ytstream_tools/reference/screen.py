"""The progress of a building: a line for each step that is done, a bar for the one that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Advance = Callable[[int, int], None]
"""Told the done and the whole number of a step's parts, where they are known."""


class Screen:
    """Where a building says what it does."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)

    def say(self, line: str) -> None:
        """Print a line."""
        self._console.print(escape(line))

    @contextmanager
    def step(self, name: str) -> Iterator[Advance]:
        """Show a step while it runs, and that it is done."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(),
                   TimeElapsedColumn())  # fmt: skip
        is_seen = self._console.is_terminal
        with Progress(
            *columns, console=self._console, transient=True, disable=not is_seen
        ) as progress:
            task = progress.add_task(escape(name), total=None)
            yield lambda done, whole: progress.update(task, completed=done, total=whole or None)
        self.say(f"done: {name}")
