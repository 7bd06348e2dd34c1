"""Sealed tables of archives that an operation rewrites: merged into large chunks, or sorted.

The operation's output is its input. So the table keeps its node, its attributes and the time at
which it goes (YTsaurus documentation, "Merge"), and readers find the rows before and after it. An
attribute of the table says that it was done: the next start finds the tables that lack it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from yt.common import YtError

from ..cluster import operation
from ..cluster.client import first_line
from ..job import JobContext
from ..log import warn
from ..schema.periods import Archive

REWRITTEN = "ytstream_rewritten"
"""The attribute of a table: the operation that has merged or sorted it."""


@dataclass
class ArchiveRewrites:
    """What is left to do for the archives of one query: one operation at a time."""

    context: JobContext
    sealed: str
    """The attribute that says that this runtime has made a table."""
    waiting: deque[tuple[str, str]] = field(default_factory=deque)
    """Archive and path of tables."""
    _running: str = ""
    """The operation of the first one; empty without one."""
    _said: str = ""

    def settle(self) -> None:
        """Before the query: find the tables that earlier drivers left as they were."""
        for output, archive in self.context.job.archives.items():
            if archive.is_rewritten:
                self.waiting += ((output, path) for path in self._left(output))

    def _left(self, output: str) -> Iterator[str]:
        folder = self.context.settings.outputs[output]
        client: Any = self.context.client
        for node in client.list(folder, attributes=[self.sealed, REWRITTEN]):
            mark = node.attributes.get(self.sealed)
            is_ours = isinstance(mark, Mapping) and (
                mark.get("ledger") == self.context.settings.ledger
            )
            if is_ours and REWRITTEN not in node.attributes:
                yield f"{folder}/{node}"

    def add(self, output: str, path: str) -> None:
        """Let a table be merged or sorted that was sealed just now."""
        is_new = (output, path) not in self.waiting
        if is_new and self.context.job.archives[output].is_rewritten:
            self.waiting.append((output, path))

    def tick(self) -> None:
        """Look whether the operation has ended, or start the next one. A failure is only logged."""
        try:
            if self._running:
                self._end()
            elif self.waiting:
                output, path = self.waiting[0]
                self._running = self._start(path, self.context.job.archives[output])
        except YtError as error:
            path = self.waiting[0][1]
            if operation.is_unknown(error):  # or the table has expired, or was removed
                self._next()
            elif (said := f"{path} stays as it is for now: {first_line(error)}") != self._said:
                self._said = said
                warn(said)
        except OSError:
            pass  # the cluster is away: batches say so

    def _start(self, path: str, archive: Archive) -> str:
        client = self.context.client
        given: dict[str, Any] = {"title": f"ytstream: {path}"}
        if self.context.settings.pool is not None:
            given["pool"] = self.context.settings.pool
        client.get(f"{path}/@id")  # raises if it is missing: a failed operation would not say so
        if archive.sort_by:
            started = client.run_sort(
                path, path, sort_by=[*archive.sort_by], sync=False, spec=given
            )
        else:
            merged = {"combine_chunks": True, **given}
            started = client.run_merge(path, path, mode="ordered", sync=False, spec=merged)
        return str(started.id)

    def _end(self) -> None:
        found = self.context.client.get_operation(
            operation_id=self._running, attributes=["state", "result"]
        )
        if found["state"] not in operation.FINAL:
            return
        path = self.waiting[0][1]
        if found["state"] == "completed":
            self.context.client.set(f"{path}/@{REWRITTEN}", self._running)
        else:
            problem = operation.reason((found.get("result") or {}).get("error") or {})
            warn(f"{path} stays as it is until the next start: {problem}")
        self._next()

    def _next(self) -> None:
        self.waiting.popleft()
        self._running = self._said = ""
