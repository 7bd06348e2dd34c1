"""Processor seconds of a job and its minicluster, and the wait for a job's end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import eventually
from ytstream_tools.demo.job_process import JobProcess

PATIENCE_SECONDS = 1_200.0


def wait(is_over: Callable[[], bool], job: JobProcess) -> None:
    """Wait for something that happens while the job runs. Raises SystemExit."""
    eventually(
        is_over,
        PATIENCE_SECONDS,
        meanwhile=lambda: job.exit_code is None,
        said=lambda: f"exit code {job.exit_code}\n{job.tail(60)}",
        error=SystemExit,
        pause=0.3,
    )


@dataclass(frozen=True)
class Usage:
    """Seconds by the clock and of processors, for information; zeros where there is no /proc."""

    clock: float
    minicluster: float
    job: float

    @classmethod
    def now(cls, cluster_pid: int, job_session: int | None = None) -> Usage:
        stats = [stat for file in Path("/proc").glob("[0-9]*/stat") if (stat := read_stat(file))]
        return cls(
            time.monotonic(),
            sum(stat.seconds for stat in stats if stat.pid == cluster_pid),
            sum(stat.seconds for stat in stats if stat.session == job_session),
        )

    def since(self, start: Usage, rows: int) -> str:
        clock, minicluster = self.clock - start.clock, self.minicluster - start.minicluster
        return (
            f"{rows} rows in {clock:.1f} s, Spark's start included: {rows / clock:.0f} rows/s; "
            f"processor seconds: job {self.job:.1f}, minicluster {minicluster:.1f}"
        )


@dataclass(frozen=True)
class Stat:
    """A process, its session, and its processor seconds."""

    pid: int
    session: int
    seconds: float


def read_stat(file: Path) -> Stat | None:
    """Return the fields of /proc/PID/stat; None when the process is gone."""
    try:
        text = file.read_text()
    except OSError:
        return None
    # Behind the name, which may hold anything: proc(5) counts the state as field 3.
    fields = text.rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return Stat(int(file.parent.name), int(fields[3]), ticks / os.sysconf("SC_CLK_TCK"))
