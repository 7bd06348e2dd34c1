"""The kept part of a job's stderr: its first and its last half of a bound."""

from __future__ import annotations

from threading import Lock

SKIPPED = b"\n...skipped...\n"


class Kept:
    """Bytes come from the thread that reads the pipe, and are looked at from others."""

    def __init__(self, bound: int) -> None:
        self._head_bound = bound // 2
        self._tail_bound = bound - bound // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._is_cut = False
        self._lock = Lock()

    def add(self, data: bytes) -> None:
        with self._lock:
            room = self._head_bound - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            if (over := len(self._tail) - self._tail_bound) > 0:
                del self._tail[:over]
                self._is_cut = True

    def bytes(self) -> bytes:
        with self._lock:
            return bytes(self._head) + (SKIPPED if self._is_cut else b"") + bytes(self._tail)
