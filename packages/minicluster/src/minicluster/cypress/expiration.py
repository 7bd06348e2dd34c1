"""Nodes whose time is over: `expiration_time`, and `expiration_timeout` since the last access.

Source: documentation, user-guide/storage/cypress (TTL of nodes); server test,
integration/tests/master/test_cypress.py::test_expiration_time_removal, test_expiration_timeout.
A node that somebody has locked waits, unless the lock is a snapshot: documentation, the same page.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ..core.clock import Clock, Period
from .commands import Cypress
from .model import SNAPSHOT, Node
from .store import Store

PERIOD = 1.0
"""Seconds of the cluster's clock between two looks."""


class Expiration:
    """Removes expired nodes as time goes by."""

    def __init__(self, clock: Clock, store: Store, cypress: Cypress) -> None:
        self._clock = clock
        self._store = store
        self._cypress = cypress
        self._period = Period(clock, PERIOD)

    def tick(self) -> None:
        if self._period.is_over():
            self.run()

    def run(self) -> None:
        now = self._clock.now()
        due = [node for node in self._store.nodes.values() if _is_due(node, now)]
        for node in due:
            waits = any(lock.request.mode != SNAPSHOT for lock in node.locks)
            if self._store.nodes.get(node.id) is node and not waits:
                self._cypress.remove(node.path, recursive=True, force=True)


def _is_due(node: Node, now: float) -> bool:
    attributes = node.attributes
    time, timeout = attributes.get("expiration_time"), attributes.get("expiration_timeout")
    if time is not None and _seconds(time) <= now:
        return True
    used = max(node.touched, node.accessed, node.modified)
    return timeout is not None and used + float(timeout) / 1000 <= now


def _seconds(time: Any) -> float:
    """Return the time of an attribute: milliseconds since the epoch, or ISO 8601."""
    if isinstance(time, int):
        return time / 1000
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except ValueError:
        return float("inf")  # kept as it was given; it never comes
