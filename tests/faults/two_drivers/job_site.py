"""A generated project as its user runs it, on a cluster of its own: its drivers are processes."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from minicluster import testing
from minicluster.client import Fault
from tests.faults.after_requests import add_fault
from tests.faults.two_drivers.cases import Place
from tests.faults.variants import Variant
from tests.support.examples import CONNECTOR, MERGE, TOTALS, WITH_DELETES, example, played
from tests.support.project import QUEUES, environment_of, generate, keep_in_state, make_static
from tests.support.static_outputs import static
from tests.support.verdict import Verdict
from tests.support.waiting import eventually
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.instance.lock import LOCK_SECONDS
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import load
from ytstream.staging import staged_tables
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.demo.job_process import JobProcess, running
from ytstream_tools.demo.job_sample import Sample, SampleRow

PACKAGE = "bids_stream"
PATIENCE_SECONDS = 300.0
"""A start of Spark, on a machine that may have other work."""
_POLL_SECONDS = 0.4

SMALLER = {
    "config/local.toml": {
        "max_rows_per_partition = 2_000": "max_rows_per_partition = 500",
        "dyn_batch_size = 1_000": "dyn_batch_size = 250",
        "[outputs]": f'connector = "{CONNECTOR}"\n\n[outputs]',
    },
    f"src/{PACKAGE}/job.py": {"shuffle_partitions=8": "shuffle_partitions=2"},
}
"""A batch is smaller than in the demonstration: what counts here is where it is cut. By file."""
SNAPSHOTS = """

from ytstream.settings import spark_conf as _conf

_STORE = "spark.sql.streaming.stateStore"
_conf.STATEFUL = (
    *_conf.STATEFUL,
    _conf.Conf(f"{_STORE}.maintenanceInterval", "1s", ""),
    _conf.Conf(f"{_STORE}.minDeltasForSnapshot", "1", ""),
)
"""
"""At the end of job.py: a snapshot of the state after each batch, uploaded within a second. A job's
own are ten batches and five minutes apart."""
BACKLOG, FOLLOWING = 5_000, 200
"""Rows of each queue: two batches and a half, and some more when the older driver has ended."""


class SpoiltError(Exception):
    """A case that did not go as its name says, or a driver that did not end as it has to."""


class EndedError(SpoiltError):
    """A driver has ended that should go on. Nobody starts another one here."""


def project_of(variant: Variant, folder: Path) -> Path:
    """Generate the project of ``variant`` in ``folder``; return its root."""
    root = generate(
        folder,
        guarantee=variant.guarantee,
        processing="aggregate" if variant.processing == TOTALS else variant.processing,
        queue_paths=QUEUES["single" if variant.queues == 1 else "multi"],
        spark_version=variant.spark,
    )
    if variant.processing == "aggregate":
        keep_in_state(root)
    if variant.processing == MERGE:
        shutil.copy(WITH_DELETES / "transform.py", root / "src" / PACKAGE)
    for name, lines in SMALLER.items():
        text = (root / name).read_text(encoding="utf-8")
        for line, smaller in lines.items():
            text = text.replace(line, smaller)
        (root / name).write_text(text, encoding="utf-8")
    if variant.has_snapshots:
        with (root / "src" / PACKAGE / "job.py").open("a", encoding="utf-8") as file:
            file.write(SNAPSHOTS)
    if variant.is_static:
        make_static(root)
    return root


@contextmanager
def site_of(variant: Variant, project: Path, logs: Path) -> Iterator[Site]:
    """Provision the job of ``project`` on a cluster of its own; no driver outlives the block."""
    with testing.start() as cluster, ExitStack() as drivers:
        settings = load(project / "config" / "local.toml", {"YT_PROXY": cluster.http})
        processing = played(variant.processing)
        found = example(variant.guarantee, processing, variant.queues, rejects=True)
        job = static(found.job, "output") if variant.is_static else found.job
        context = JobContext(connect(settings), settings, job, guarantee_of(job))
        job_objects.provision(context)
        demo_tables.fill_reference(context, found.sample)
        python = str(environment_of(variant.spark) / "bin" / "python")
        yield Site(context, found.sample, cluster, project, logs, drivers, python)


@dataclass
class Site:
    """A job on a cluster of its own: its drivers, and what went in."""

    context: JobContext
    sample: Sample
    cluster: testing.Running
    project: Path
    logs: Path
    _drivers: ExitStack
    python: str
    """The interpreter of the job."""
    driver: JobProcess | None = None
    """The newest one; None before the first one."""
    _sent: list[SampleRow] = field(default_factory=list)
    """Every row that was put in, and by queue those that follow."""
    _following: list[list[SampleRow]] = field(default_factory=list)
    _seed: int = 0
    _duplicated: int = 0
    """Rows too many that cases before have counted."""
    _saved: tuple[str, list[SampleRow]] | None = None
    """What restore() brings back: the cluster's state, and the rows sent until then."""

    def save(self) -> None:
        """Keep the cluster as it is; no driver runs."""
        self._saved = str(self.project / "saved.state"), [*self._sent]
        self.cluster.client.save(self._saved[0])

    def restore(self) -> bool:
        """Bring the cluster back to where save() was called; return whether it was."""
        if self._saved is None:
            return False
        if self.driver is not None:
            self.driver.kill()
        state, sent = self._saved
        self.cluster.client.load(state)
        self.driver, self._sent, self._duplicated = None, [*sent], 0
        return True

    def start(self, log: str) -> JobProcess:
        """Start a driver: the job as a process."""
        path = self.logs / log
        path.unlink(missing_ok=True)
        started = running(PACKAGE, self.cluster.http, path, self.project, python=self.python)
        self.driver = self._drivers.enter_context(started)
        return self.driver

    def arm(self, place: Place, *, action: str, pgid: int | None = None) -> Fault:
        """Make the cluster act at ``place``; return the rule that acts."""
        settings = self.context.settings
        paths = {
            "ledger": settings.ledger,
            "aside": settings.staging,
            "output": settings.output,
            "queue": settings.queues[0],
        }
        steps = [
            replace(step, where={name: _filled(value, paths) for name, value in step.where.items()})
            for step in place.steps
        ]
        return add_fault(self.cluster.client.faults, steps, action=action, pgid=pgid)

    def fill(self, count: int = BACKLOG) -> None:
        """Put a backlog into the queues, of ``count`` rows later than all before."""
        start: dict[str, int] = {}
        if self.sample.event_time and self._sent:
            start["start_us"] = self.sample.newest(self.context.job, self._sent)
        self._following = []
        for queue in self.context.settings.queues:
            self._seed += 1
            rows: list[SampleRow] = [*self.sample.make(count + FOLLOWING, self._seed, **start)]
            self._following.append(rows[-FOLLOWING:])
            self._put(queue, rows[:-FOLLOWING])

    def wait_hit(self, rule: Fault, process: JobProcess) -> None:
        """Wait until the rule has acted."""
        self.wait(lambda: self.cluster.client.faults.get(rule).hits == 1, process)

    def kill(
        self,
        place: Place,
        process: JobProcess,
        *,
        fills: bool = True,
        seconds: float = LOCK_SECONDS,
    ) -> None:
        """Let the cluster kill the process at ``place``, of the rows that come if it ``fills``.

        Then its lock, and what lives for so many ``seconds``, has expired.
        """
        rule = self.arm(place, action="kill", pgid=process.pgid)
        if fills:
            self.fill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_SECONDS)
        if not self.cluster.client.faults.get(rule).hits or process.exit_code != -signal.SIGKILL:
            code = process.exit_code
            raise SpoiltError(f"a driver was not killed, its code is {code}:\n{process.tail()}")
        self.expire_the_lock(seconds)

    def expire_the_lock(self, seconds: float = LOCK_SECONDS) -> None:
        """Let the cluster's clock go on until the older driver's lock is free."""
        self.cluster.client.clock.advance(seconds + 1)

    def drain(self) -> None:
        """Wait until every row is in a batch of the ledger, and every table that it names moved.

        Before that until the newest driver has started.
        """
        assert self.driver is not None
        for is_over in (self.driver.has_started, drained(self.context), self._is_published):
            self.wait(is_over, self.driver)

    def follow(self) -> None:
        """Put in the rest, and see that the newest driver still works."""
        self.cluster.client.faults.clear()
        queues = self.context.settings.queues
        for queue, rows in zip(queues, self._following, strict=True):
            self._put(queue, rows)
        self.drain()
        self.close()

    def close(self) -> None:
        """Put in rows that bring out what waits for the watermark, each in a batch of its own."""
        queues = self.context.settings.queues
        for row in self.sample.closing(self.context.job, self._sent):
            self._put(queues[0], [row])
            self.drain()

    def batches(self) -> int:
        """Return how many batches the ledger has counted."""
        client = self.context.client
        head = positions.read_head(self.context.settings.ledger, client.select_rows)
        return -1 if head is None else head.number

    def count(self) -> Verdict:
        """Return how many rows are missing, and how many too many since the last count."""
        outcome = demo_tables.together(demo_tables.outcomes(self.context, self.sample, self._sent))
        before, self._duplicated = self._duplicated, outcome.duplicated
        return Verdict(outcome.lost, repeated=outcome.duplicated - before)

    def wait(self, is_over: Callable[[], bool], process: JobProcess) -> None:
        """Wait for something that happens while ``process`` runs."""
        eventually(
            is_over,
            PATIENCE_SECONDS,
            meanwhile=lambda: process.exit_code is None,
            said=lambda: f"exit code {process.exit_code}\n{process.tail()}",
            error=lambda text: (SpoiltError if process.exit_code is None else EndedError)(text),
            pause=_POLL_SECONDS,
        )

    def _is_published(self) -> bool:
        client, settings = self.context.client, self.context.settings
        return not staged_tables.named(client, settings, staged_tables.written(client, settings))

    def _put(self, queue: str, rows: Sequence[SampleRow]) -> None:
        client = self.context.client
        demo_tables.produce(client, queue, rows, int(client.get(f"{queue}/@tablet_count")))
        self._sent.extend(rows)


def verify_goes_on(process: JobProcess) -> None:
    """Raise EndedError when a driver has ended."""
    if process.exit_code is not None:
        raise EndedError(f"a driver ended with {process.exit_code}:\n{process.tail()}")


def _filled(value: Any, paths: dict[str, str]) -> Any:
    return value.format(**paths) if isinstance(value, str) else value
