"""Run by the interpreter inside a generated project, as a script of its user's would be.

    python journey.py ROWS OUTCOME

Starts the project's minicluster, provisions, produces the pickled ROWS into the one queue, runs the
job until it has read them all, stops it, and pickles what it found into OUTCOME.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from demo import tables
from demo.job import PACKAGE, ROOT, Job, run_command, running
from demo.scenario import drained
from minicluster import testing

PATIENCE_SECONDS = 1_200.0
CHUNK = 5_000


def main(rows_file: Path, outcome_file: Path) -> None:
    rows = pickle.loads(rows_file.read_bytes())
    log = ROOT / "build" / "job.log"
    log.parent.mkdir(exist_ok=True)
    with testing.start() as cluster:
        settings = module("settings").load(ROOT / "config/local.toml", {"YT_PROXY": cluster.http})
        client = module("cluster").connect(settings)
        print(run_command(cluster.http, "provision"))
        (queue,) = settings.queues
        produce(client, queue, rows)
        before = Usage.now(cluster.pid)
        with running(cluster.http, log) as job:
            wait(drained(client, settings), job)
            after = Usage.now(cluster.pid, job.pgid)
            exit_code = job.stop()
        print(job.tail(), after.since(before, len(rows)), sep="\n")
        described = [name for name, _, _ in module("tables").OUTPUT]
        names = [*module("guarantee").KEY_COLUMNS, *described]
        outcome = {
            "exit_code": exit_code,
            "rows_in": tables.rows_in(client, queue),
            "queue_tablets": int(client.get(f"{queue}/@tablet_count")),
            "columns": names,
            "rows": tables.read(client, settings.output, names),
        }
    outcome_file.write_bytes(pickle.dumps(outcome))


def module(name: str) -> Any:
    return import_module(f"{PACKAGE}.{name}")


def produce(client: Any, queue: str, rows: list[dict[str, Any]]) -> None:
    for start in range(0, len(rows), CHUNK):
        client.insert_rows(queue, rows[start : start + CHUNK])


def wait(is_over: Any, job: Job) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_over():
        if job.exit_code is not None or time.monotonic() > deadline:
            sys.exit(f"not drained; exit code {job.exit_code}\n{job.tail(60)}")
        time.sleep(0.3)


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
    """One /proc/PID/stat; None when the process is gone."""
    try:
        text = file.read_text()
    except OSError:
        return None
    # Behind the name, which may hold anything: proc(5) counts the state as field 3.
    fields = text.rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return Stat(int(file.parent.name), int(fields[3]), ticks / os.sysconf("SC_CLK_TCK"))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
