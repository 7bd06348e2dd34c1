"""The recorder: it saves the state after each request of chosen methods.

A client that is killed right after request N leaves the state of request N. So one recorded run
gives the cluster that each kill would have left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from .journal import Call


class Recorder:
    """A listener of the journal; saves nothing until it is told to."""

    def __init__(self, save: Callable[[str], None]) -> None:
        """Take ``save``, which writes the state to the file that it is given."""
        self._save = save
        self._folder: Path | None = None
        self._methods: frozenset[str] = frozenset()

    def record(self, folder: str | None, methods: Collection[str]) -> None:
        """Save into ``folder``, which exists, from now on; with None save no more."""
        self._folder = Path(folder) if folder is not None else None
        self._methods = frozenset(methods)

    def __call__(self, call: Call, seconds: float) -> None:
        """Save the state, in a file that has the number of the request's entry."""
        if self._folder is not None and call.method in self._methods:
            self._save(str(self._folder / f"{call.entry['n']}.state"))
