"""A job in a thread of this process: its own supervisor, on a session that is warm.

A process that dies leaves nothing but the cluster's state, so each thread has a new epoch's owner,
a client of its own and, without state, a checkpoint of its own. What they share is the JVM.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from tests.support.waiting import eventually
from ytstream.cluster.client import connect
from ytstream.connector.java import jvm_of
from ytstream.connector.tablet_transactions import Tablets
from ytstream.errors import JobError
from ytstream.job import JobContext
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import STOPPED, QueryRunner, supervise
from ytstream_tools.testing.job_stream import PATIENCE_SECONDS, Stream

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
"""Pauses after failures: tests have many of them."""
Wait = Callable[[Callable[[], object]], None]


@dataclass
class JobThread:
    """One driver."""

    context: JobContext
    spark: SparkSession
    error: BaseException | None = None
    """What has ended it by itself: a refusal, or the failures that the supervisor allows."""
    ended: str = ""
    """How it has ended otherwise, as the supervisor says it."""
    _stop: StopSignal = field(default_factory=StopSignal)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the driver; its first request comes from another thread."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self.error = error

    def run(self) -> None:
        """Run the job as `run` does, in this thread. Raises what ends it."""
        job = replace(
            self.context.job,
            first_pause_seconds=FIRST_PAUSE,
            longest_pause_seconds=LONGEST_PAUSE,
        )
        # A client of its own: a client keeps its transaction for all threads.
        own = replace(self.context, client=connect(self.context.settings))
        runner = self._runner(own, Tablets(jvm_of(self.spark), own.settings))
        self.ended = supervise(job, runner, self._stop)

    def _runner(self, own: JobContext, tablets: Tablets) -> QueryRunner:
        return QueryRunner(own, self.spark, tablets, self._stop)

    def is_asked_to_end(self, seconds: float) -> bool:
        """Wait so long for ask_to_end(); return whether it was called."""
        return self._stop.wait(seconds)

    @property
    def is_over(self) -> bool:
        """Whether its thread has ended."""
        return self._thread is None or not self._thread.is_alive()

    def ask_to_end(self) -> None:
        """Let it end between two batches."""
        self._stop.set()

    def end(self, seconds: float | None = None) -> None:
        """Stop it between two batches, and wait so long."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(seconds)


@contextmanager
def supervised(stream: Stream) -> Iterator[Wait]:
    """Run the job, stopped at the end; yield a function that waits. No error may end it."""
    driver = JobThread(stream.context, stream.spark)

    def wait(look: Callable[[], object]) -> None:
        eventually(
            look,
            PATIENCE_SECONDS,
            meanwhile=lambda: not driver.is_over,
            said=lambda: str(driver.error),
        )

    driver.start()
    try:
        yield wait
    finally:
        driver.end()
    assert (driver.error, driver.ended) == (None, STOPPED)


def end_of(stream: Stream, is_running: Callable[[], bool], deed: Callable[[], None]) -> JobError:
    """Run the job, do something to it, and return the error that ends it."""
    driver = JobThread(stream.context, stream.spark)
    driver.start()
    try:
        eventually(is_running, PATIENCE_SECONDS, meanwhile=lambda: not driver.is_over)
        deed()
        eventually(lambda: driver.is_over, PATIENCE_SECONDS, what="the end of the job")
    finally:
        driver.end()
    assert isinstance(driver.error, JobError)
    return driver.error
