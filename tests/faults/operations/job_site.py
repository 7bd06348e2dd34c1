"""A generated project on a minicluster with operations: submit it, watch it, count its rows.

Imported by the interpreter of the project's own environment, as a script of its user's would be.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from minicluster import testing
from minicluster.client.operations import Job, Operation
from minicluster.release import node, publish
from tests.support import jvm
from tests.support.waiting import eventually
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.settings.job_settings import load
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.crash_scenario import drained

PATIENCE_SECONDS = 600.0
"""On two cores that other tests use as well, a driver takes a minute or two to its first batch."""
SUBMIT = """
[submit]
driver_memory = "768m"
executors = 1
executor_cores = 2
executor_memory = "768m"
java = "{java}"
{more}

[spark]
spark.driver.extraJavaOptions = "{options}"
spark.executor.extraJavaOptions = "{options}"
"""
"""Small, and quick to start: a test has one executor for two queue tablets at a time."""
ALIAS = "*bids-stream"
FINAL = ("failed", "aborted", "completed")


class NotDoneError(Exception):
    """What was waited for has not happened; the text ends with what the jobs said."""


@dataclass
class Site:
    """A project in the current folder, its minicluster, and the rows that were sent so far."""

    package: str
    cluster: testing.Running
    root: Path
    context: JobContext
    sample: Any
    config: Path
    sent: list[dict[str, Any]] = field(default_factory=list)
    python: str = sys.executable
    """Whose environment the commands run in, and one with another Spark."""
    former: str | None = None

    @property
    def client(self) -> Any:
        return self.context.client

    def provision(self) -> None:
        done = self.command("provision")
        if done.returncode:
            raise NotDoneError(done.stdout)
        demo_tables.fill_reference(self.context, self.sample)

    def send(self, count: int) -> None:
        """Put ``count`` new sample rows into the queues, the same number into each.

        Their event times follow those of the rows before: late ones would be left out.
        """
        queues, job = self.context.settings.queues, self.context.job
        has_times = self.sent and self.sample.event_time is not None
        start_us = self.sample.newest(job, self.sent) + 1 if has_times else None
        for number, queue in enumerate(queues):
            seed = len(self.sent) + number + 1
            rows = self.sample.make(count // len(queues), seed, start_us)
            self.produce(queue, rows, int(self.client.get(f"{queue}/@tablet_count")))

    def send_closing(self) -> None:
        """Send what brings out the rows that wait for the watermark, each in a batch of its own."""
        for row in self.sample.closing(self.context.job, self.sent):
            self.produce(self.context.settings.queues[0], [row], 1)
            self.wait_drained()

    def produce(self, queue: str, rows: list[dict[str, Any]], tablets: int) -> None:
        demo_tables.produce(self.client, queue, rows, tablets)
        self.sent += rows

    # What runs

    def configure(self, submit: str = "") -> None:
        """Write the configuration of this cluster, with more lines for its ``[submit]``."""
        self.config.write_text(_configuration(self.root, self.cluster.http, submit))

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Call a command of the job as `make` does; return what it said, both streams in one."""
        return subprocess.run(
            self._line(*words),
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=2 * PATIENCE_SECONDS,
        )

    def kill(self, *words: str, once: Callable[[], bool]) -> None:
        """Call a command and kill all its processes, as if their machine went off."""
        called = subprocess.Popen(
            self._line(*words),
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            self.wait("the moment of the kill", lambda: called.poll() is not None or once())
            if called.returncode is not None:
                raise NotDoneError(f"the command ended before its kill: {called.returncode}")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(called.pid, signal.SIGKILL)
            called.wait()

    def _line(self, name: str, *more: str) -> list[str]:
        return [self.python, "-m", self.package, name, "--config", str(self.config), *more]

    def submit(self, *words: str) -> str:
        """Submit the job until its first batch; return what the command said."""
        done = self.command("submit", *words)
        if done.returncode:
            raise NotDoneError(f"submit ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def operations(self) -> list[Operation]:
        """Return all operations, in the order of their starts."""
        found: list[Operation] = self.cluster.client.operations.list()
        return found

    def driver(self) -> Operation:
        """Return the driver's operation, the newest one."""
        return [one for one in self.operations() if one.alias == ALIAS][-1]

    def executors(self) -> Operation:
        """Return the newest operation of executors."""
        return [one for one in self.operations() if one.alias is None][-1]

    def stderr(self, operation: Operation, job: Job) -> str:
        data = self.client.get_job_stderr(operation.id, job.id).read()
        return str(data.decode(errors="replace"))

    def probes(self) -> list[str]:
        """Return what the PROBE of the project's transform.py, if it has one, said in all jobs."""
        return [
            line.removeprefix("PROBE ")
            for operation in self.operations()
            for job in operation.jobs
            for line in self.stderr(operation, job).splitlines()
            if line.startswith("PROBE ")
        ]

    # What is waited for

    def wait(self, what: str, is_so: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
        """Return what ``is_so`` returns as soon as it is true. Raises NotDoneError."""
        return eventually(is_so, seconds, what=what, said=self.said, error=NotDoneError, pause=0.3)

    def wait_drained(self) -> None:
        """Wait until every row is in a batch; a driver that has failed is not waited for."""
        is_drained = drained(self.context)

        def ended() -> bool:
            return is_drained() or self.driver().state in FINAL

        self.wait("the end of the queues", ended)
        if not is_drained():
            raise NotDoneError(f"the driver has ended\n{self.said()}")

    def batches(self) -> int:
        """Return how many batches the ledger holds."""
        path = self.context.settings.ledger
        return len(list(self.client.select_rows(f'kind from [{path}] where kind = "batch"')))

    def newest(self) -> tuple[int, int]:
        """Return the epoch and the number of the last batch in the ledger."""
        path = self.context.settings.ledger
        rows = self.client.select_rows(f'epoch, number from [{path}] where kind = "batch"')
        return max(((row["epoch"], row["number"]) for row in rows), key=lambda row: int(row[1]))

    def processes(self, job: Job) -> list[int]:
        """Return the processes of a job, whatever the scheduler thinks of it."""
        marked = f"YT_JOB_ID={job.id}".encode()
        found = []
        for file in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it has ended meanwhile, or is somebody else's
                if marked in file.read_bytes().split(b"\0"):
                    found.append(int(file.parent.name))
        return found

    def signal(self, job: Job, number: signal.Signals) -> None:
        for pid in self.processes(job):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def said(self, lines: int = 60) -> str:
        """Return the end of what each job of each operation said."""
        texts = []
        for operation in self.operations():
            texts.append(f"== {operation.title} {operation.id}: {operation.state}")
            for job in operation.jobs:
                texts.append(f"-- job {job.id}: {job.state} {job.abort_reason or ''}")
                texts += self.stderr(operation, job).splitlines()[-lines:]
        return "\n".join(texts)

    # What came of it

    def stop(self) -> None:
        """Ask the job to stop, as `make stop` does; wait for the end of the driver's operation."""
        done = self.command("stop")
        if done.returncode or self.driver().state != "completed":
            raise NotDoneError(f"stop ended with {done.returncode}:\n{done.stdout}\n{self.said()}")

    def counted(self) -> dict[str, Any]:
        """Count rows from the tables."""
        outcomes = demo_tables.outcomes(self.context, self.sample, self.sent)
        return {
            "rows_in": len(self.sent),
            "rows_out": outcomes["output"].rows_out,
            "lost": sum(one.lost for one in outcomes.values()),
            "repeated": sum(one.duplicated for one in outcomes.values()),
            "batches": self.batches(),
            "through_job_proxies": sum(
                entry.proxy not in self.cluster.rpc
                for entry in self.cluster.client.journal("ModifyRows")
            ),
        }


@contextmanager
def site(package: str, former: str | None = None) -> Iterator[Site]:
    """Start a minicluster with operations for the project in the current folder."""
    if missing := publish.missing():
        raise NotDoneError(f"this machine lacks {', '.join(missing)}")
    root = Path.cwd()
    job = import_module(f"{package}.job").JOB
    sample = import_module("sample").SAMPLE
    pythons = [sys.executable, *filter(None, [former])]
    homes = [_spark_home(python) for python in pythons]
    with testing.start(operations=True, spark_homes=homes) as cluster:
        config = root / "config" / "cluster.toml"
        config.write_text(_configuration(root, cluster.http))
        settings = load(config, {})
        context = JobContext(connect(settings), settings, job, guarantee_of(job))
        yield Site(package, cluster, root, context, sample, config, former=former)


def _spark_home(python: str) -> str:
    """Return the folder of the Spark in the environment of an interpreter."""
    code = "import pyspark; print(*pyspark.__path__)"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def submit_part(*more: str) -> str:
    """Return ``[submit]``, with these lines, and ``[spark]`` of a job that is quick to start."""
    return SUBMIT.format(java=node.java_home(), options=jvm.OPTIONS, more="\n".join(more))


def _configuration(root: Path, proxy: str, submit: str = "") -> str:
    local = (root / "config" / "local.toml").read_text()
    here = re.sub(r'^proxy = ".*?"', f'proxy = "{proxy}"', local, flags=re.M)
    return here + submit_part(f'alias = "{ALIAS}"', submit)
