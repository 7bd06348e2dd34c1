"""Lanes: worker processes side by side, each with a JVM and a cluster, fed with cases.

A worker is of one variant. One that has stalled, or that does not answer, is replaced.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.sweep import results
from tests.faults.sweep.cases import Case
from tests.faults.sweep.play import STALLED
from tests.faults.sweep.scene import SEED
from tests.faults.sweep.variants import variant_of
from tests.faults.sweep.worker import READY, RESULT
from tests.support.project import ROOT

#: So long a worker may take to start and record, and for a case.
START_SECONDS, CASE_SECONDS = 900.0, 480.0
#: A JVM that has played so many cases is replaced.
MOST_CASES = 300
#: Workers of a variant that could not begin, before it is left.
MOST_FAILURES = 3


@dataclass
class Board:
    """What is left to play, by variant; lanes take from it."""

    waiting: dict[str, list[Case]]
    #: Why cases were not played.
    problems: list[str] = field(default_factory=list)
    _busy: dict[str, int] = field(default_factory=dict)
    _failures: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def variant(self) -> str | None:
        """Return the variant for a lane that is free: one that the fewest others play.

        Those with state take three times as long a case, so they come last.
        """
        with self._lock:
            left = [name for name, cases in self.waiting.items() if cases]
            if not left:
                return None
            found = min(left, key=self._rank)
            self._busy[found] = self._busy.get(found, 0) + 1
            return found

    def _rank(self, name: str) -> tuple[int, bool, int]:
        return self._busy.get(name, 0), variant_of(name).is_stateful, -len(self.waiting[name])

    def take(self, variant: str) -> Case | None:
        """Return the next case of a variant."""
        with self._lock:
            cases = self.waiting[variant]
            return cases.pop(0) if cases else None

    def clear(self) -> None:
        """Leave all that has not begun to another run."""
        with self._lock:
            for cases in self.waiting.values():
                cases.clear()

    def failed(self, variant: str, why: str) -> None:
        """Note that a worker could not begin; after a few, leave the variant to another run."""
        with self._lock:
            self._failures[variant] = self._failures.get(variant, 0) + 1
            if self._failures[variant] >= MOST_FAILURES:
                self.problems.append(f"{len(self.waiting[variant])} cases not played: {why}")
                self.waiting[variant].clear()

    def leave(self, variant: str) -> None:
        """Note that a lane has finished with a variant."""
        with self._lock:
            self._busy[variant] -= 1


def board_of(cases: Iterable[Case]) -> Board:
    """Return a board with these cases."""
    waiting: dict[str, list[Case]] = {}
    for case in cases:
        waiting.setdefault(case.variant.name, []).append(case)
    return Board(waiting)


def run(
    board: Board, count: int, folder: Path, told: Callable[[results.Line], None], *words: str
) -> None:
    """Play everything on the board in ``count`` lanes; ``told`` hears of each result, in turn."""
    heard: queue.Queue[results.Line | None] = queue.Queue()
    stop = threading.Event()

    def lane(number: int) -> None:
        try:
            while not stop.is_set() and (variant := board.variant()) is not None:
                try:
                    _play(board, variant, number, folder, heard.put, stop, words)
                finally:
                    board.leave(variant)
        finally:
            heard.put(None)

    threads = [threading.Thread(target=lane, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    try:
        ended = 0
        while ended < count:
            line = heard.get()
            if line is None:
                ended += 1
            else:
                told(line)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)


def _play(
    board: Board,
    variant: str,
    number: int,
    folder: Path,
    heard: Callable[[results.Line], None],
    stop: threading.Event,
    words: Iterable[str],
) -> None:
    """Let one worker play cases of ``variant`` until it ends or has played enough."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"lane-{number}.log").open("a") as log:
        worker = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.faults.sweep.worker",
                variant,
                str(folder),
                *words,
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_listen, args=(worker, answers), daemon=True).start()
        try:
            if _answer(answers, READY, START_SECONDS, stop) is None:
                if not stop.is_set():
                    board.failed(variant, f"no recording of {variant}; see {log.name}")
                return
            for _ in range(MOST_CASES):
                case = None if stop.is_set() else board.take(variant)
                if case is None:
                    return
                _write(worker, case.name)
                text = _answer(answers, RESULT, CASE_SECONDS, stop)
                if stop.is_set():
                    return
                if text is None:
                    heard(_stalled(case.name, "the worker gave no answer"))
                    return
                line = results.Line(**json.loads(text.removeprefix(RESULT)))
                heard(line)
                if line.verdict == STALLED:  # its worker ends: see worker.py
                    return
        finally:
            _end(worker)


def _listen(worker: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
    assert worker.stdout is not None
    for line in worker.stdout:
        answers.put(line.rstrip("\n"))
    answers.put(None)


def _answer(
    answers: queue.Queue[str | None], begin: str, seconds: float, stop: threading.Event
) -> str | None:
    """Return the next line that begins so; None when there is none in time."""
    for _ in range(int(seconds * 2)):
        if stop.is_set():
            return None
        with suppress(queue.Empty):
            line = answers.get(timeout=0.5)
            while line is not None and not line.startswith(begin):
                line = answers.get(timeout=0.5)
            return line
    return None


def _stalled(name: str, why: str) -> results.Line:
    return results.Line(name, STALLED, 0, 0, 0.0, SEED, results.commit(), said=why)


def _write(worker: subprocess.Popen[str], line: str) -> None:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        worker.stdin.write(f"{line}\n")
        worker.stdin.flush()


def _end(worker: subprocess.Popen[str]) -> None:
    """Let the worker end: its input is over. Kill it when it does not."""
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        worker.stdin.close()
    try:
        worker.wait(60)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
