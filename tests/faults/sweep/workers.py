"""Worker processes side by side, each with a JVM and a cluster, fed with cases.

A worker plays the cases of one variant after the other. One that has stalled, or that does not
answer, is replaced.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from local_extensions.versions import SPARK
from tests.faults.sweep import results
from tests.faults.sweep.cases import Case
from tests.faults.sweep.driver import SLOWER
from tests.faults.sweep.jobs import variant_of
from tests.faults.sweep.judging import unplayed
from tests.faults.sweep.recording import SEED
from tests.faults.sweep.worker import READY, RECORDED, RESULT
from tests.support.project import ROOT, environment_of
from tests.support.verdict import STALLED

START_SECONDS, RECORD_SECONDS, CASE_SECONDS = 600.0 * SLOWER, 1200.0 * SLOWER, 900.0 * SLOWER
"""So long a worker may take to start, to record, and for a case."""
_END_SECONDS = 60.0
"""How long a worker may take to end its drivers."""
MOST_CASES = 300
"""A JVM that has played so many cases is replaced."""
_WORKER = "tests.faults.sweep.worker"
MOST_FAILURES = 3
"""Recordings of a variant that failed, before it is left."""


@dataclass
class Board:
    """What is left to play, by variant; workers take from it."""

    waiting: dict[str, list[Case]]
    problems: list[str] = field(default_factory=list)
    """Why cases were not played."""
    _at: dict[int, str] = field(default_factory=dict)
    """The variant that each worker is at."""
    _failures: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, worker: int) -> Case | None:
        """Return the next case for a worker: of its variant as long as that has some.

        Then of one that the fewest others play, and of few cases: a run that is cut off has seen
        most variants. Those with state take three times as long a case, so they come last.
        """
        with self._lock:
            own = self._at.pop(worker, "")
            if not self.waiting.get(own):
                busy, left = (
                    Counter(self._at.values()),
                    [n for n, some in self.waiting.items() if some],
                )
                if not left:
                    return None
                own = min(
                    left,
                    key=lambda n: (busy[n], variant_of(n).is_stateful, len(self.waiting[n])),
                )
            self._at[worker] = own
            return self.waiting[own].pop(0)

    def clear(self) -> None:
        """Leave all that has not begun to another run."""
        with self._lock:
            for cases in self.waiting.values():
                cases.clear()

    def failed(self, variant: str, why: str) -> None:
        """Note that a variant could not be recorded; after a few times, leave it to another run."""
        with self._lock:
            self._failures[variant] += 1
            if self._failures[variant] >= MOST_FAILURES:
                self.problems.append(f"{len(self.waiting[variant])} cases not played: {why}")
                self.waiting[variant].clear()


def board_of(cases: Iterable[Case]) -> Board:
    """Return a board with these cases."""
    waiting: dict[str, list[Case]] = {}
    for case in cases:
        waiting.setdefault(case.variant.name, []).append(case)
    return Board(waiting)


def run(
    board: Board,
    count: int,
    folder: Path,
    told: Callable[[results.Line], None],
    *words: str,
    spark: str = SPARK,
) -> None:
    """Play everything on the board in ``count`` workers; ``told`` hears of each result, in turn.

    The workers run in the environment of ``spark``.
    """
    command = [*command_of(spark), str(folder), *words]
    heard: queue.Queue[results.Line | None] = queue.Queue()
    stop = threading.Event()

    def feed(number: int) -> None:
        try:
            while not stop.is_set() and (case := board.take(number)) is not None:
                _play(board, case, number, folder, heard.put, stop, command)
        finally:
            heard.put(None)

    threads = [threading.Thread(target=feed, args=(n,), daemon=True) for n in range(count)]
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
            thread.join(_END_SECONDS + 5)


def command_of(spark: str) -> list[str]:
    """Return the words that start a worker in the environment of a Spark.

    Only the default one has what the template itself needs. Another one finds it there, behind its
    own packages.
    """
    if spark == SPARK:
        return [sys.executable, "-m", _WORKER]
    more = [path for path in sys.path if path.endswith("site-packages")]
    code = (
        f"import runpy, sys; sys.path += {more!r}; "
        f"runpy.run_module({_WORKER!r}, run_name='__main__', alter_sys=True)"
    )
    return [str(environment_of(spark) / "bin" / "python"), "-c", code]


def _play(
    board: Board,
    first: Case,
    number: int,
    folder: Path,
    heard: Callable[[results.Line], None],
    stop: threading.Event,
    command: Sequence[str],
) -> None:
    """Let one worker play cases, the ``first`` and others, until it ends or has played enough."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"worker-{number}.log").open("a") as log:
        worker = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_listen, args=(worker, answers), daemon=True).start()
        case, variant = first, ""
        try:
            if _answer(answers, READY, START_SECONDS, stop) is None:
                board.failed(first.variant.name, f"no worker starts; see {log.name}")
                return
            for left in reversed(range(MOST_CASES)):
                _write(worker, case.name)
                if case.variant.name != variant:
                    variant = case.variant.name
                    if _answer(answers, RECORDED, RECORD_SECONDS, stop) is None:
                        board.failed(variant, f"no recording of {variant}; see {log.name}")
                        return
                text = _answer(answers, RESULT, CASE_SECONDS, stop)
                if stop.is_set():
                    return
                if text is None:
                    heard(_unanswered(case))
                    return
                line = results.Line(**json.loads(text.removeprefix(RESULT)))
                heard(line)
                # The worker of a case that has stalled ends: see worker.py.
                found = board.take(number) if left and line.verdict != STALLED else None
                if found is None:
                    return
                case = found
        finally:
            _end(worker, is_interrupted=stop.is_set())


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


def _unanswered(case: Case) -> results.Line:
    return results.Line(
        case.name,
        unplayed(case),
        0,
        0,
        0.0,
        SEED,
        results.commit(),
        results.of(case.name),
        said="the worker gave no answer",
    )


def _write(worker: subprocess.Popen[str], line: str) -> None:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        worker.stdin.write(f"{line}\n")
        worker.stdin.flush()


def _end(worker: subprocess.Popen[str], *, is_interrupted: bool) -> None:
    """Let the worker end: its input is over, or it leaves its case. Kill it when it does not."""
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        worker.stdin.close()
    if is_interrupted:
        worker.send_signal(signal.SIGINT)
    try:
        worker.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
