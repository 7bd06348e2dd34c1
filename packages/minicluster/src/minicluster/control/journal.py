"""The journal: an entry for each request, and counts by method."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import YtError

JOURNAL_SIZE = 100_000
"""Entries kept; the counts continue beyond it."""


@dataclass(slots=True)
class Call:
    """One request. `args` is what rules and people may look at: paths, ids, counts; never rows."""

    protocol: str
    proxy: str
    method: str
    args: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    error: YtError | None = None
    fault: str | None = None
    """The action of the last rule that hit the call."""
    started: float = 0.0
    entry: dict[str, Any] = field(default_factory=dict)
    """Its entry in the journal."""


class Journal:
    """The last requests in their order; listeners are told of each one when it is over."""

    def __init__(self) -> None:
        self.entries: deque[dict[str, Any]] = deque(maxlen=JOURNAL_SIZE)
        self.counts: Counter[str] = Counter()
        self.listeners: list[Callable[[Call, float], None]] = []
        self._sequence = 0

    def number(self) -> int:
        """Return the next number; requests and fault rules are numbered together."""
        self._sequence += 1
        return self._sequence

    def open(self, call: Call) -> None:
        """Enter a request that has just arrived."""
        call.started = time.perf_counter()
        self.counts[call.method] += 1
        call.entry = {
            "n": self.number(),
            "time": time.time(),
            "protocol": call.protocol,
            "proxy": call.proxy,
            "method": call.method,
            "args": call.args,
            "label": call.label,
            "error": None,
            "fault": None,
        }
        self.entries.append(call.entry)

    def close(self, call: Call, failure: Exception | None) -> None:
        """Complete the entry of a request that is over."""
        if isinstance(failure, YtError):
            call.error = failure
            call.entry["error"] = {"code": failure.cause.code, "message": str(failure)}
        call.entry["fault"] = call.fault
        call.entry["seconds"] = time.perf_counter() - call.started
        for listener in self.listeners:
            listener(call, call.entry["seconds"])

    def clear(self) -> None:
        self.entries.clear()
        self.counts.clear()
