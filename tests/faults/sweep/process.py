"""`tests.faults.sweep.process run VARIANT`: the job as a process, on the cluster YT_PROXY.

It has the lock, a JVM and a checkpoint that nobody else has seen. A case may kill it instead of a
driver in a thread; its successor is one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

from tests.faults.sweep import cases
from tests.faults.sweep.injection import armed, hit_of, verify
from tests.faults.sweep.jobs import variant_of
from tests.faults.sweep.lab import context_of
from tests.faults.sweep.playing import MissedError, Play
from tests.faults.sweep.points import Point
from tests.faults.sweep.recording import RecordedLife
from tests.support.jvm import submit_args
from tests.support.project import ROOT
from ytstream import log
from ytstream.errors import JobError, RestartableError
from ytstream.instance.lock import LOCK_SECONDS, alone
from ytstream.query import supervisor
from ytstream.spark.jvm_process import explained_jvm, leave_if_hung
from ytstream_tools.demo.job_process import running

LOG = ROOT / "build" / "proof" / "processes.log"
_SECONDS = 300.0
"""A start of Spark, on a machine that may have other work."""


def main(variant: str, proxy: str) -> int:
    """Return the exit code of `run`: 0, or 1 for a refusal or failure."""
    os.environ.setdefault("YTSTREAM_SUBMIT_ARGS", submit_args())
    context, _ = context_of(variant_of(variant), proxy)
    try:
        with explained_jvm(), ExitStack() as session, alone(context):
            supervisor.run(context, session)
    except (JobError, RestartableError) as error:
        log.fail(str(error), error.code)
        return 1
    return 0


def kill(play: Play, point: Point, life: RecordedLife) -> None:
    """Let the cluster kill a real driver at the point; start its successor in a thread.

    It cannot kill at the start of a master transaction: that of the lock is one more.
    """
    recording, case = play.recording, play.case
    play.begin(life.base)
    when = "before" if case.fault == cases.KILLED_BEFORE else "after"
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with running(__name__, recording.lab.cluster.http, LOG, ROOT, recording.variant.name) as driver:
        with armed(play, point, action="kill", pgid=driver.pgid, when=when) as rule:
            with suppress(subprocess.TimeoutExpired):
                driver.wait(_SECONDS)
            hits = recording.control.faults.get(rule).hits
            hit = hit_of(play, rule) if hits else ("nothing", "")
        if not hits or driver.exit_code != -signal.SIGKILL:
            raise MissedError(f"the process was not killed: {driver.exit_code}, {driver.tail()}")
    recording.control.faults.clear()
    recording.control.clock.advance(LOCK_SECONDS + 1)
    play.since = time.monotonic()
    play.arrive()
    play.start()
    verify(point, hit)


if __name__ == "__main__":
    code = main(sys.argv[2], os.environ["YT_PROXY"])
    leave_if_hung(code)
    raise SystemExit(code)
