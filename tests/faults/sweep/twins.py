"""`tests.faults.sweep.twins [--count N]`: cases of the proof with a real process and `kill -9`.

The driver is a process of its own, with the lock, a JVM and a checkpoint that nobody else has seen.
The minicluster kills its whole process group at the request. Its successor runs in the lane.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from tests.faults.sweep import cases, lane, results
from tests.faults.sweep.cases import Case
from tests.faults.sweep.injection import armed, verify
from tests.faults.sweep.play import HELD, play
from tests.faults.sweep.playing import MissedError, Play
from tests.faults.sweep.points import Point
from tests.faults.sweep.scene import Recorded, recorded
from tests.faults.sweep.worker import line_of
from tests.support.project import ROOT
from ytstream.recovery.lock import LOCK_SECONDS

LOG = ROOT / "build" / "proof" / "twins.log"
COUNT = 100
#: A start of Spark, on a machine that may have other work.
_SECONDS = 300.0
#: The process has a lock: its master transaction is one more than the lanes' drivers begin.
_OTHERWISE = ("start_transaction",)


@contextmanager
def process(
    variant: str, proxy: str, log: Path = LOG, rows: int = lane.PARTITION_ROWS
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the job as a process; no process outlives the block."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        started = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.sweep.process", variant, proxy, str(rows)],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},  # a killed one has said all it said
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def chosen(count: int) -> list[Case]:
    """Return ``count`` kills, spread evenly over all that a process meets at the same request."""
    kills = [
        case
        for case in cases.distinct(cases.all_cases())
        if case.fault in cases.KILLS
        and not (case.second or case.variant.is_listing)
        and not any(f":{method}." in case.name for method in _OTHERWISE)
    ]
    step = max(1, len(kills) // count)
    return kills[step // 2 :: step][:count]


def kill(play: Play, point: Point, life: Recorded) -> int:
    """Let the cluster kill a real driver at the point; start its successor in the lane."""
    scene, case = play.scene, play.case
    scene.load(life.base)
    scene.control.journal.clear()
    rows = play.output_rows()
    when = "before" if case.fault == cases.KILLED_BEFORE else "after"
    with process(scene.variant.name, scene.lane.cluster.http) as driver:
        with armed(play, point, action="kill", pgid=driver.pid, when=when) as rule:
            with suppress(subprocess.TimeoutExpired):
                driver.wait(_SECONDS)
            hits = scene.control.faults.get(rule).hits
        if not hits or driver.returncode != -signal.SIGKILL:
            raise MissedError(f"the process was not killed: code {driver.returncode}")
    last = scene.control.journal()[-1].n
    verify(play, point, rule, last)
    scene.control.faults.clear()
    scene.control.clock.advance(LOCK_SECONDS + 1)
    play.since = time.monotonic()
    play.start()
    return rows


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when every twin holds, else 1."""
    parser = argparse.ArgumentParser("python -m tests.faults.sweep.twins", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--only", default="", help="words that the names of the cases have")
    parser.add_argument("--results", type=Path, default=results.RESULTS)
    given = parser.parse_args(words)
    wanted = chosen(given.count)
    if given.only:
        wanted = cases.chosen(given.only, chosen(10**6))[: given.count]
    left = {*results.pending((case.name for case in wanted), results.read(given.results), "twin")}
    commit, wrong = results.commit(), 0
    with lane.opened() as opened:
        for variant, group in groupby(wanted, lambda case: case.variant):
            own = [case for case in group if case.name in left]
            scene = recorded(variant, opened) if own else None
            for case in own:
                assert scene is not None
                started = time.monotonic()
                result = play(case, scene, kill)
                line = line_of(case.name, result, time.monotonic() - started, commit)
                results.append(replace(line, of="twin"), given.results)
                wrong += result.verdict != HELD
                print(f"{result.verdict:8} {line.seconds:5.1f} s {case.name} {result.said}")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
