"""`tests.faults.two_drivers.outages`: the cluster goes away and comes back; a job is stopped.

Each case runs one real driver. Printed: what the driver said, how many rows are lost or repeated,
and for a stop the seconds until the process ended.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.faults.two_drivers.__main__ import LOGS
from tests.faults.two_drivers.cases import Variant
from tests.faults.two_drivers.play import PACKAGE, SpoiltError, Stage, project_of, staged
from tests.support.jvm import submit_args
from ytstream.log import Event
from ytstream_tools.demo.job_process import JobProcess

VARIANT = Variant("transactional", "map", 1)
#: A request of the front end that fails as if nobody listened.
_HANG_UP = "hang_up"

console = Console(width=140, highlight=False, markup=False)


@dataclass(frozen=True)
class Outcome:
    """What came of one case."""

    name: str
    seconds: float
    lost: int
    duplicated: int
    said: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is lost or repeated."""
        return not (self.lost or self.duplicated)


@contextmanager
def paused_cluster(stage: Stage) -> Iterator[None]:
    """Stop the cluster's process: connections are accepted, and nobody answers."""
    os.kill(stage.cluster.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(stage.cluster.pid, signal.SIGCONT)


@contextmanager
def without(stage: Stage, protocol: str) -> Iterator[None]:
    """Hang up on each request of HTTP or of RPC."""
    proxies = [stage.cluster.http] if protocol == "http" else stage.cluster.rpc
    faults = stage.cluster.client.faults
    rules = [faults.add(action=_HANG_UP, times=None, proxy=proxy) for proxy in proxies]
    try:
        yield
    finally:
        for rule in rules:
            faults.remove(rule)


def outage(stage: Stage, name: str, away: Callable[[], None]) -> Outcome:
    """Let the cluster go away under a busy driver; see that all rows come through."""
    driver = stage.driver or stage.start(f"{name}.log")
    stage.wait(driver.has_started, driver)
    before = driver.log.stat().st_size
    stage.fill()
    began = time.monotonic()
    away()
    stage.wait(driver.has_started, driver)
    stage.follow()
    lost, duplicated = stage.count()
    return Outcome(name, time.monotonic() - began, lost, duplicated, _said(driver, before))


def stopped(
    stage: Stage, name: str, prepare: Callable[[JobProcess], None], codes: tuple[int, ...] = (0,)
) -> Outcome:
    """Call `stop` while the driver is as ``prepare`` makes it; it ends with one of ``codes``."""
    driver = stage.driver or stage.start(f"{name}.log")
    stage.wait(driver.has_started, driver)
    before = driver.log.stat().st_size
    prepare(driver)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", PACKAGE, "stop"],
        cwd=stage.project,
        env={
            **os.environ,
            "YT_PROXY": stage.cluster.http,
            "PYTHONPATH": os.pathsep.join(map(str, (stage.project / "src", stage.project))),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    code = driver.wait()
    seconds = time.monotonic() - began
    if done.returncode or code not in codes:
        raise SpoiltError(f"stop: {done.returncode}, {done.stdout}; driver: {code}")
    stage.cluster.client.faults.clear()
    stage.driver = None
    said = (*_said(driver, before), *done.stdout.splitlines())
    stage.start(f"{name}.next.log")
    stage.drain()
    lost, duplicated = stage.count()
    return Outcome(name, seconds, lost, duplicated, said)


def _said(driver: JobProcess, start: int) -> tuple[str, ...]:
    """Return the driver's lines but for those of batches."""
    text = driver.log.read_bytes()[start:].decode(errors="replace")
    return tuple(line for line in text.splitlines() if ": batch " not in line)


def cases(stage: Stage, minutes: float) -> dict[str, Callable[[str], Outcome]]:
    """Return what can be played, by name."""

    def gone(seconds: float) -> None:
        with paused_cluster(stage):
            time.sleep(seconds)

    def cut(protocol: str) -> None:
        with without(stage, protocol):
            time.sleep(60)

    def backing_off(driver: JobProcess) -> None:
        # It ends with 1 when the batch that it waits for meets the fault once more.
        stage.cluster.client.faults.add(
            action="fail",
            method="ModifyRows",
            where={"path": stage.context.settings.output},
            times=None,
            error={"code": 1, "message": "the tablet is on strike"},
        )
        stage.fill()
        stage.wait(lambda: driver.events(Event.FAILURE) >= 2, driver)

    def draining(driver: JobProcess) -> None:
        where = {"path": stage.context.settings.output}
        slow = stage.cluster.client.faults.add(
            action="delay", method="ModifyRows", where=where, seconds=10
        )
        stage.fill()
        stage.wait_hit(slow, driver)
        os.kill(driver.pgid, signal.SIGTERM)  # to Python alone

    return {
        "outage-all": lambda name: outage(stage, name, lambda: gone(60 * minutes)),
        "outage-http": lambda name: outage(stage, name, lambda: cut("http")),
        "outage-rpc": lambda name: outage(stage, name, lambda: cut("rpc")),
        "stop-idle": lambda name: stopped(stage, name, lambda _: stage.drain()),
        "stop-busy": lambda name: stopped(stage, name, lambda _: stage.fill()),
        "stop-draining": lambda name: stopped(stage, name, draining),
        "stop-backing-off": lambda name: stopped(stage, name, backing_off, (0, 1)),
    }


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when nothing is lost or repeated and every stop ends the driver, else 1."""
    parser = argparse.ArgumentParser(
        "python -m tests.faults.two_drivers.outages", description=__doc__
    )
    parser.add_argument("--only", default="", help="a part of the names of the cases to play")
    parser.add_argument("--minutes", type=float, default=10, help="of the outage of everything")
    given = parser.parse_args(words)
    os.environ.setdefault("YTSTREAM_SUBMIT_ARGS", submit_args())
    LOGS.mkdir(parents=True, exist_ok=True)
    table = Table("case", "seconds", "lost", "duplicated", "result", title="outages and stops")
    failed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        staged(VARIANT, project_of(VARIANT, Path(folder)), LOGS) as stage,
    ):
        for name, run in cases(stage, given.minutes).items():
            if given.only not in name:
                continue
            try:
                found = run(name)
            except SpoiltError as error:
                console.print(f"{name}: FAILED: {error}")
                table.add_row(name, "", "", "", "FAILED")
                failed += 1
                break  # the driver is not in a state to go on with
            console.print(f"{name}:", *found.said, sep="\n  ")
            verdict = "ok" if found.holds else "FAILED"
            figures = f"{found.seconds:.1f}", str(found.lost), str(found.duplicated)
            table.add_row(name, *figures, verdict)
            failed += not found.holds
    console.print(table)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
