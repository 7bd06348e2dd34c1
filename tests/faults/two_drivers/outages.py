"""`tests.faults.two_drivers.outages`: the cluster goes away and comes back; a job is stopped.

Each case runs one real driver. Printed: what the driver said, how many rows are lost or repeated,
the seconds from the end of an outage to the next batch and the failures that were counted, and for
a stop the seconds until the process ended.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.faults.two_drivers.__main__ import console, run
from tests.faults.two_drivers.cases import STATE, Place, pauses
from tests.faults.two_drivers.job_site import PACKAGE, Site, SpoiltError
from tests.faults.two_drivers.play import Result
from tests.faults.variants import Variant
from tests.support.server_errors import WRITES_DISABLED
from ytstream.errors import JobError
from ytstream.log import Event
from ytstream_tools.demo.job_process import JobProcess, run_command

VARIANT = Variant("transactional", "map", 1)
AWAY_SECONDS, CUT_SECONDS = 600.0, 60.0


@dataclass(frozen=True)
class Case:
    """One outage, or one stop."""

    name: str
    play: Callable[[Site, str], Result]
    variant: Variant = VARIANT


@contextmanager
def paused_cluster(site: Site) -> Iterator[None]:
    """Stop the cluster's process: connections are accepted, and nobody answers."""
    os.kill(site.cluster.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(site.cluster.pid, signal.SIGCONT)


@contextmanager
def without(site: Site, proxies: Sequence[str]) -> Iterator[None]:
    """Hang up on each request to these proxies, as if nobody listened."""
    faults = site.cluster.client.faults
    rules = [faults.add(action="hang_up", times=None, proxy=proxy) for proxy in proxies]
    try:
        yield
    finally:
        for rule in rules:
            faults.remove(rule)


Away = Callable[[Site], AbstractContextManager[None]]


def outage(seconds: float, away: Away, place: Place | None = None) -> Callable[[Site, str], Result]:
    """Let the cluster be away for so long; see that all rows come through.

    It goes when the driver is at ``place`` in a batch; without one, as soon as rows are there.
    """

    def played(site: Site, name: str) -> Result:
        with _driver(site, name) as driver:
            held = site.arm(place, action="delay") if place is not None else None
            site.fill()
            if held is not None:
                site.wait_hit(held, driver)
            failures = driver.events(Event.FAILURE)
            with away(site):
                if held is not None and away is not paused_cluster:  # which answers nobody
                    site.cluster.client.faults.remove(held)
                time.sleep(seconds)
            if held is not None:
                site.cluster.client.faults.clear()
            resumed = _resumed(site, driver)
            site.follow()
            counted = driver.events(Event.FAILURE) - failures
        return Result(site.count(), f"goes on after {resumed:.0f} s, {counted} failures")

    return played


def _resumed(site: Site, driver: JobProcess) -> float:
    """Put more rows into the queue; return the seconds until the next batch is in the ledger.

    A batch may need no HTTP, so all rows of before may be in one by now.
    """
    began, before = time.monotonic(), site.batches()
    site.fill()
    site.wait(lambda: site.batches() > before, driver)
    return time.monotonic() - began


def stopped(
    prepare: Callable[[Site, JobProcess], None], codes: Sequence[int] = (0,)
) -> Callable[[Site, str], Result]:
    """Call `stop` while the driver is as ``prepare`` makes it; it ends with one of ``codes``."""

    def played(site: Site, name: str) -> Result:
        with _driver(site, name) as driver:
            prepare(site, driver)
            began = time.monotonic()
            try:
                said = run_command(PACKAGE, site.cluster.http, site.project, "stop")
            except JobError as error:
                raise SpoiltError(f"stop: {error}") from error
            code = driver.wait()
            seconds = time.monotonic() - began
        console.print(*said.splitlines(), sep="\n  ")
        if code not in codes:
            raise SpoiltError(f"the driver ended with {code}")
        site.cluster.client.faults.clear()
        site.start(f"{name}.next.log")
        site.drain()
        return Result(site.count(), f"stopped in {seconds:.1f} s")

    return played


@contextmanager
def _driver(site: Site, name: str) -> Iterator[JobProcess]:
    """Give the newest driver, started; print at the end what it has said, but of batches."""
    driver = site.driver or site.start(f"{name}.log")
    site.wait(driver.has_started, driver)
    before = driver.log.stat().st_size
    try:
        yield driver
    finally:
        text = driver.log.read_bytes()[before:].decode(errors="replace")
        lines = (line for line in text.splitlines() if ": batch " not in line)
        console.print(f"{name}:", *lines, sep="\n  ")


def backing_off(site: Site, driver: JobProcess) -> None:
    """Let each commit fail, until the driver waits before it tries again."""
    site.cluster.client.faults.add(
        action="fail", method="CommitTransaction", times=None, error=WRITES_DISABLED
    )
    site.fill()
    site.wait(lambda: driver.events(Event.FAILURE) >= 2, driver)


def _draining(site: Site, driver: JobProcess) -> None:
    """Let the driver end after a batch that takes long."""
    where = {"path": site.context.settings.output}
    slow = site.cluster.client.faults.add(
        action="delay", method="ModifyRows", where=where, seconds=10
    )
    site.fill()
    site.wait_hit(slow, driver)
    os.kill(driver.pgid, signal.SIGTERM)  # to Python alone


def _without_http(site: Site) -> AbstractContextManager[None]:
    return without(site, [site.cluster.http])


def _without_rpc(site: Site) -> AbstractContextManager[None]:
    return without(site, site.cluster.rpc)


AWAY: Mapping[str, tuple[float, Away]] = {
    "all": (AWAY_SECONDS, paused_cluster),
    "http": (CUT_SECONDS, _without_http),
    "rpc": (CUT_SECONDS, _without_rpc),
}
"""What goes away, and for how long."""
STATEFUL = tuple(
    Variant("transactional", processing, 1)
    for processing in ("window", "aggregate", "deduplicate", "sessions")
)
"""Jobs with state, which the cluster leaves in each state of a batch."""

CASES = (
    *(Case(f"outage-{what}", outage(*away)) for what, away in AWAY.items()),
    Case("stop-idle", stopped(lambda site, _: site.drain())),
    Case("stop-busy", stopped(lambda site, _: site.fill())),
    Case("stop-draining", stopped(_draining)),
    # It ends with 1 when the batch that it waits for meets the fault once more.
    Case("stop-backing-off", stopped(backing_off, (0, 1))),
    *(
        Case(f"outage-{what}-{variant.processing}-{place.name}", outage(*away, place), variant)
        for variant in STATEFUL
        for what, away in AWAY.items()
        for place in (*pauses(variant), STATE)
    ),
)


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when nothing is lost or repeated and every stop ends the driver, else 1."""
    return run(__doc__, CASES, lambda case, site: case.play(site, case.name), words)


if __name__ == "__main__":
    raise SystemExit(main())
