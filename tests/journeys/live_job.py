"""A generated job as a process on a minicluster, with a producer beside it: real batches.

The pictures of the documentation and the tests of what operators see come from its ledger.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from minicluster import testing as minicluster
from tests.faults.two_drivers.job_site import PACKAGE, PATIENCE_SECONDS, project_of
from tests.faults.variants import Variant
from tests.support.examples import example
from tests.support.waiting import eventually
from ytstream.cluster.client import Client, connect
from ytstream.guarantees import guarantee_of
from ytstream.instance.lock import LOCK_SECONDS
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import load
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.demo.job_process import JobProcess, running
from ytstream_tools.demo.job_sample import Sample
from ytstream_tools.status import job_status

_POLL_SECONDS = 0.3


@dataclass
class Live:
    """The job: start it, send it rows, kill it."""

    context: JobContext
    sample: Sample
    cluster: minicluster.Running
    project: Path
    _processes: ExitStack
    _client: Client
    """The producer's own: it has a thread of its own."""
    change: Mapping[str, str] = field(default_factory=dict)
    """Columns that the producer changes in each fourth row, at the moment."""
    process: JobProcess | None = None
    _calls: int = 0

    def send(self, count: int) -> None:
        """Put rows into the queue: one in fifty is invalid."""
        self._calls += 1
        rows = self.sample.make(count, self._calls)
        if self.change:
            rows = [{**row, **self.change} if n % 4 == 0 else row for n, row in enumerate(rows)]
        demo_tables.produce(self._client, self.context.settings.queues[0], rows, 4)

    @contextmanager
    def producer(self, rows: int, every: float) -> Iterator[None]:
        """Send so many rows every so many seconds, in a thread that ends with the block."""
        is_over = threading.Event()

        def produce() -> None:
            while not is_over.wait(every):
                self.send(rows)

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def start(self) -> None:
        """Start the driver, and wait until its query runs."""
        log = self.project.parent / "job.log"
        started = running(PACKAGE, self.cluster.http, log, self.project)
        self.process = self._processes.enter_context(started)
        self.wait(self.process.has_started)

    def kill(self) -> None:
        """Kill the driver with SIGKILL. Its lock is free 30 seconds later."""
        assert self.process is not None
        self.process.kill()

    def expire_the_lock(self) -> None:
        """Move the cluster's clock until the lock of a driver that was killed is free."""
        self.cluster.client.clock.advance(LOCK_SECONDS + 1)

    def drain(self) -> None:
        """Wait until every row is in a batch of the ledger."""
        self.wait(drained(self.context))

    def wait_for_batches(self, count: int) -> None:
        """Wait until the ledger has so many batches more."""
        goal = self.batches + count
        self.wait(lambda: self.batches >= goal)

    @property
    def batches(self) -> int:
        """How many batches have happened."""
        head = job_status.read(self.context).head
        return head.number if head is not None else 0

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Wait for something while the driver runs. Raises AssertionError if it ends."""
        process = self.process
        assert process is not None
        eventually(
            is_over,
            PATIENCE_SECONDS,
            meanwhile=lambda: process.exit_code is None,
            said=process.tail,
            pause=_POLL_SECONDS,
        )


@contextmanager
def live(folder: Path, processing: str = "map") -> Iterator[Live]:
    """Generate a job with rejected rows in ``folder`` and provision it; no driver runs yet.

    None outlives the block.
    """
    made = example("transactional", processing, rejects=True)
    project = project_of(Variant("transactional", processing, 1), folder)
    job = replace(made.job, name=project.name)
    with minicluster.start() as cluster, ExitStack() as processes:
        settings = load(project / "config/local.toml", {"YT_PROXY": cluster.http})
        context = JobContext(connect(settings), settings, job, guarantee_of(job))
        job_objects.provision(context)
        yield Live(context, made.sample, cluster, project, processes, connect(settings))
