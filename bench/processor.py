"""Processor seconds of processes over time, from /proc: who has worked when.

A thread reads them a few times a second, so that nothing has to be asked of the processes that are
measured. What a process had used at any moment between two readings is interpolated.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_PAUSE_SECONDS = 0.05
_LOOK_SECONDS = 1.0
"""How often the processes below another one are looked for: a look reads the stat of all."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True)
class Stat:
    """A process: its parent, and its processor seconds with those of children that are gone."""

    pid: int
    parent: int
    name: str
    own: float
    reaped: float


def read_stat(pid: int) -> Stat | None:
    """Return what /proc/PID/stat says; None when the process is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # Behind the name, which may hold anything: proc(5) counts the state as field 3.
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text.rpartition(")")[2].split()
    user, system, child_user, child_system = map(int, fields[11:15])
    own, reaped = (user + system) / _TICKS, (child_user + child_system) / _TICKS
    return Stat(pid, int(fields[1]), name, own, reaped)


def all_stats() -> list[Stat]:
    """Return every process of this machine."""
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return [stat for pid in pids if (stat := read_stat(pid)) is not None]


def below(pid: int, stats: list[Stat]) -> Iterator[Stat]:
    """Yield the processes that were started by another one, directly or not."""
    for stat in stats:
        if stat.parent == pid:
            yield stat
            yield from below(stat.pid, stats)


@dataclass
class Tree:
    """A driver: Python, the JVM that it has started, and the Python workers of that one."""

    pid: int
    _jvm: int = 0
    _workers: list[int] = field(default_factory=list)
    _next: float = 0.0

    def seconds(self) -> dict[str, float]:
        """Return what each part has used since its start."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + _LOOK_SECONDS
            self._look()
        workers = (stat for pid in self._workers if (stat := read_stat(pid)) is not None)
        return {
            "python": _own(self.pid),
            "jvm": _own(self._jvm),
            "workers": sum(stat.own + stat.reaped for stat in workers),
        }

    def _look(self) -> None:
        stats = all_stats()
        found = [stat for stat in below(self.pid, stats) if stat.name == "java"]
        self._jvm = found[0].pid if found else 0
        self._workers = [stat.pid for stat in below(self._jvm, stats)] if self._jvm else []


def one(name: str, pid: int) -> Callable[[], dict[str, float]]:
    """Return a source of the seconds of one process, under a name."""
    return lambda: {name: _own(pid)}


def machine() -> dict[str, float]:
    """Return the seconds of all processors: idle ones, stolen ones, all.

    A processor that waits for a disk is idle; one that the hypervisor has given to another machine
    is stolen.
    """
    line = (_PROC / "stat").read_text().partition("\n")[0]
    ticks = [int(number) / _TICKS for number in line.split()[1:9]]
    return {"idle": ticks[3] + ticks[4], "stolen": ticks[7], "all": sum(ticks)}


def _own(pid: int) -> float:
    stat = read_stat(pid) if pid else None
    return stat.own if stat is not None else 0.0


@dataclass
class Readings:
    """What was read, and when by the wall clock."""

    times: list[float] = field(default_factory=list)
    values: list[Mapping[str, float]] = field(default_factory=list)

    def add(self, time_: float, values: Mapping[str, float]) -> None:
        """Add a reading; they come in the order of time."""
        self.times.append(time_)
        self.values.append(values)

    def between(self, begin: float, end: float) -> dict[str, float]:
        """Return what each part has used between two moments."""
        first, last = self._at(begin), self._at(end)
        return {name: round(last[name] - first.get(name, 0.0), 4) for name in last}

    def _at(self, moment: float) -> Mapping[str, float]:
        place = bisect_left(self.times, moment)
        if place == 0 or place == len(self.times):
            return self.values[min(place, len(self.times) - 1)]
        before, after = self.values[place - 1], self.values[place]
        begin, end = self.times[place - 1 : place + 1]
        part = (moment - begin) / (end - begin)
        return {
            name: before.get(name, 0.0) + part * (value - before.get(name, 0.0))
            for name, value in after.items()
        }


@contextmanager
def reading(*sources: Callable[[], Mapping[str, float]]) -> Iterator[Readings]:
    """Read the sources until the block is left."""
    found, over = Readings(), threading.Event()

    def read() -> None:
        values: dict[str, float] = {}
        for source in sources:
            values |= source()
        found.add(time.time(), values)

    def run() -> None:
        while not over.wait(_PAUSE_SECONDS):
            read()

    read()
    thread = threading.Thread(target=run, name="processor", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
        read()
