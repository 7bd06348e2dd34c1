"""What a proxy remembers of a path: the table that it led to.

A real proxy keeps an entry for about 15 seconds (client/tablet_client/config.cpp,
TTableMountCacheConfig), keyed by path. So after a link has been switched, proxies answer from the
old table and from the new one side by side. Here nothing is remembered unless a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

_proxy: ContextVar[str] = ContextVar("proxy", default="")


@contextmanager
def through(proxy: str) -> Iterator[None]:
    """Serve a request of this proxy."""
    token = _proxy.set(proxy)
    try:
        yield
    finally:
        _proxy.reset(token)


@dataclass
class MountCache:
    """The node of each path, by proxy; an entry is used for `lifetime` seconds."""

    lifetime: float = 0.0
    _entries: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)

    def set_lifetime(self, seconds: float) -> None:
        self.lifetime, self._entries = seconds, {}

    def find(self, path: str, now: float) -> str | None:
        """Return the id of the node that the path led to a short while ago."""
        node_id, until = self._entries.get((_proxy.get(), path), ("", 0.0))
        return node_id if now < until else None

    def keep(self, path: str, node_id: str, now: float) -> None:
        if self.lifetime:
            self._entries[_proxy.get(), path] = node_id, now + self.lifetime
