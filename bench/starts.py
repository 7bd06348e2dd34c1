"""Start to first commit, by part: the first start, one after a stop, one after kill -9.

The job is a generated project, run as its owner runs it, with rows waiting.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cases import Size
from bench.started import IMPORTS
from minicluster import testing
from minicluster.client import Entry
from tests.support.project import ROOT, generate
from ytstream_tools.demo.job_process import environment, run_command

Say = Callable[[str], None]
PACKAGE = "bids_stream"
FIRST, STOPPED, KILLED = "first", "stopped", "killed"
"""What a start comes after."""
KINDS = {
    FIRST: "the first start",
    STOPPED: "after a stop",
    KILLED: "after kill -9",
}
_ROWS = 120_000
_PATIENCE_SECONDS = 600.0
_POLL_SECONDS = 0.1
_BATCHES = 2
"""Batches before a stop or a kill."""


def measured(guarantee: str, processing: str, size: Size, say: Say) -> dict[str, Any]:
    """Return the parts of each start, in seconds: by kind a list, one for each round."""
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for number in range(size.starts):
        with tempfile.TemporaryDirectory() as folder, testing.start() as cluster:
            project = generate(Path(folder), guarantee=guarantee, processing=processing)
            run_command(PACKAGE, cluster.http, project, "provision")
            run_command(PACKAGE, cluster.http, project, "rows", f"--count={_ROWS}")
            begin = time.time()
            for kind in KINDS:
                job = Started(project, cluster)
                try:
                    found[kind].append(job.parts(begin))
                    total = sum(found[kind][-1].values())
                    say(f"round {number + 1}, {KINDS[kind]}: {total:.1f} s")
                    job.wait_batches(_BATCHES)
                    if kind == FIRST:
                        job.stop()
                    begin = time.time()
                finally:
                    job.kill()
    return {"case": {"guarantee": guarantee, "processing": processing}, "starts": found}


@dataclass(frozen=True)
class Part:
    """When a part of a start began and ended."""

    name: str
    begin: float
    end: float


class Started:
    """One run of the job, with the times of its parts."""

    def __init__(self, project: Path, cluster: testing.Running) -> None:
        self._cluster = cluster
        self._times = project / "build" / "times"
        self._times.parent.mkdir(exist_ok=True)
        self._times.unlink(missing_ok=True)
        self._since = cluster.client.status()["requests"]
        self._log = project / "build" / "started.log"
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.started", str(self._times), PACKAGE],
                env=_environment(cluster.http, project),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=project,
                start_new_session=True,
            )

    def parts(self, begin: float) -> dict[str, float]:
        """Wait for the first commit; return the seconds of each part since ``begin``."""
        self.wait_batches(1)
        handed = next(part.end for part in self._read() if part.name == "batch")
        while not (commits := _after(self._cluster.client.journal(since=self._since), handed)):
            self._verify()
            time.sleep(_POLL_SECONDS)
        return split(self._read(), begin, commits[0].time)

    def wait_batches(self, count: int) -> None:
        """Wait until so many batches have been handed over."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while sum(part.name == "batch" for part in self._read()) < count:
            self._verify()
            if time.monotonic() > deadline:
                raise RuntimeError("the job has not begun to commit")
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Stop the job as an owner does."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_PATIENCE_SECONDS)

    def kill(self) -> None:
        """Kill the whole group; harmless when it is gone."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._process.wait()

    def _read(self) -> list[Part]:
        if not self._times.exists():
            return []
        lines = self._times.read_text(encoding="utf-8").splitlines()
        words = [line.split() for line in lines]
        return [Part(name, float(begin), float(end)) for name, begin, end in words]

    def _verify(self) -> None:
        if self._process.poll() is not None:
            said = self._log.read_text(encoding="utf-8", errors="replace")
            raise RuntimeError(f"the job has ended:\n{said[-4_000:]}")


def _environment(proxy: str, project: Path) -> dict[str, str]:
    """Return the environment of the job, in which this folder is found behind the project's own."""
    found = environment(proxy, project)
    return {**found, "PYTHONPATH": os.pathsep.join((found["PYTHONPATH"], str(ROOT)))}


def _after(journal: list[Entry], handed: float) -> list[Entry]:
    """Return the commits since the batch was handed over; its own is the first."""
    return [
        entry for entry in journal if entry.method == "CommitTransaction" and entry.time >= handed
    ]


def split(parts: list[Part], begin: float, committed: float) -> dict[str, float]:
    """Return the seconds of each part between two moments; they add up to the whole."""
    of: dict[str, list[Part]] = {}
    for part in parts:
        if part.begin < committed:
            of.setdefault(part.name, []).append(part)
    imported = of[IMPORTS][0].end
    took = {name: sum(p.end - p.begin for p in listed) for name, listed in of.items()}
    planned, first = of["plan"][-1].end, of["batch"][0]
    found = {
        "python": imported - begin,
        "lock": took["lock"],
        "look": of["session"][0].begin - imported - took["lock"],
        "jvm": took["jvm"],
        "session": took["session"] - took["jvm"],
        "recovery": took["recovery"],
        "plan": took["plan"],
        "batch": first.end - planned,
        "commit": committed - first.end,
    }
    return {**found, "rest": committed - begin - sum(found.values())}


def totals(found: Mapping[str, Any], kind: str) -> list[float]:
    """Return the seconds of each start of a kind."""
    return [sum(parts.values()) for parts in found["starts"][kind]]
