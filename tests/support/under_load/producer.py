"""Rows that come each second, as many as a load wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from yt.yson import YsonUint64

ALL = (0, 1, 2, 3)
"""The tablets of the queue."""
STEP_US = 10_000_000
"""Each chunk of rows is so much later than the one before: it closes a window."""


@dataclass
class Producer:
    """Puts a chunk of rows into the queue each second, from a thread."""

    client: Any
    queue: str
    rows: Sequence[Mapping[str, Any]]
    tablets: Sequence[int] = ALL
    step_us: int = STEP_US
    size: int = 0
    """Rows of a chunk; 0: none."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the first row of the next chunk."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while rows are written: who holds it reads a queue that does not grow."""
    _later_us: int = 0

    def send(self, rows: int) -> None:
        """Let so many rows come in a second from now on."""
        self.size = rows

    def run(self, is_over: threading.Event) -> None:
        """Write until it is over."""
        while not is_over.wait(1.0):
            with self.lock:
                if self.size:
                    self.client.insert_rows(self.queue, [*self._chunk(self.size)])

    def _chunk(self, size: int) -> Iterator[dict[str, Any]]:
        self._later_us += self.step_us
        change, self.change = self.change, {}
        for number, row in enumerate(self.rows[:size]):
            time_us = YsonUint64(row["date_time"] + self._later_us)
            tablet = self.tablets[number % len(self.tablets)]
            yield {**row, "date_time": time_us, **change, "$tablet_index": tablet}
            change = {}


@contextmanager
def producing(producer: Producer) -> Iterator[Producer]:
    """Let the producer run, which has nothing to send yet."""
    is_over = threading.Event()
    thread = threading.Thread(target=producer.run, args=(is_over,))
    thread.start()
    try:
        yield producer
    finally:
        is_over.set()
        thread.join()
