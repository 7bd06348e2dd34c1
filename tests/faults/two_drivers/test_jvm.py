"""The JVM of a running job is killed: one message, exit code 1, and the next start goes on."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.two_drivers.job_site import Site, project_of, site_of
from tests.faults.two_drivers.outages import VARIANT, backing_off
from tests.support.jvm import submit_args
from tests.support.verdict import EXACT
from ytstream.errors.error_codes import ErrorCode
from ytstream.log import failure_in
from ytstream_tools.demo.job_process import JobProcess
from ytstream_tools.status.status_text import status

REMEDY = "start again: nothing that was committed is lost; what the JVM itself said is above"
KILLED = "Spark's JVM was killed (SIGKILL), as the system does when memory runs out"
STARTING = "Spark's JVM has ended while it started"
_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
"""What else a job may print, besides lines of its log."""
_PRINTED = re.compile(r"cluster: 127\.0\.0\.1:\d+|WARNING: Using incubator modules: .*")


def _jvm(driver: JobProcess) -> int | None:
    """Return the process id of the driver's JVM; None before it runs."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        # Not `java -version`, which the job runs before, nor a child of the start script.
        is_spark = words[0].endswith(b"java") and b"org.apache.spark.deploy.SparkSubmit" in words
        if is_spark and parent == driver.pgid:
            return int(entry.name)
    return None


def _while_it_starts(site: Site, driver: JobProcess) -> None:
    site.wait(lambda: _jvm(driver) is not None, driver)


def _while_it_is_idle(site: Site, _: JobProcess) -> None:
    site.drain()


def _in_a_batch(site: Site, driver: JobProcess) -> None:
    where = {"path": site.context.settings.output}
    faults = site.cluster.client.faults
    writing = faults.add(method="ModifyRows", where=where, action="delay", skip=2)
    site.fill()
    site.wait_hit(writing, driver)


def _while_it_backs_off(site: Site, driver: JobProcess) -> None:
    site.wait(driver.has_started, driver)
    backing_off(site, driver)


Moment = Callable[[Site, JobProcess], None]
_ELSEWHERE: tuple[Moment, ...] = (_while_it_starts, _while_it_is_idle, _while_it_backs_off)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize(
    "moments",
    [(_in_a_batch,), _ELSEWHERE],
    ids=["in_a_batch", "elsewhere"],
)
def test_a_jvm_that_is_killed_ends_the_job_with_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moments: tuple[Moment, ...]
) -> None:
    """Kill it in the lives of drivers that follow each other."""
    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    with site_of(VARIANT, project_of(VARIANT, tmp_path), tmp_path) as site:
        site.fill()
        for moment in moments:
            message = STARTING if moment is _while_it_starts else KILLED
            driver = site.start(f"{moment.__name__}.log")
            moment(site, driver)
            jvm = _jvm(driver)
            assert jvm is not None
            os.kill(jvm, signal.SIGKILL)
            assert driver.wait() == 1
            lines = driver.log.read_text(encoding="utf-8").splitlines()
            assert failure_in(lines) == (len(lines) - 2, ErrorCode.JVM_ENDED)
            assert lines[-2].endswith(f" {message}")
            assert lines[-1] == f"  -> {REMEDY}"
            for line in lines[:-2]:
                assert re.match(rf"{_TIME} (INFO|WARNING) ", line) or _PRINTED.fullmatch(line), line
            if message is KILLED:
                assert f": failed: {KILLED}" in status(site.context)
            site.cluster.client.faults.clear()
        site.start("last.log")
        site.follow()
        assert site.count() == EXACT
