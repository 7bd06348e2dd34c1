"""A driver's life in this process: the job's own supervisor in a thread, on a session that is warm.

A process that dies leaves nothing but the cluster's state, so a new life has a new epoch's owner, a
client of its own and, without state, a checkpoint of its own. What they share is the JVM.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from ytstream.cluster.client import connect
from ytstream.connector.java import jvm_of
from ytstream.connector.tablet_transactions import Tablets
from ytstream.errors import JobError, OutageError
from ytstream.job import JobContext
from ytstream.log import Event
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner, supervise

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
"""Pauses after failures: the proof has many of them."""
SLOWER = float(os.environ.get("SLOWER", "1"))
"""How many times slower than alone this machine is, since other work runs on it: every limit of
time is so much longer."""
PATIENCE = 180.0 * SLOWER
"""Rows that are in no batch after so long are stalled: those of a job and of the listing alike."""
_POLL = 0.05
LOOK_SECONDS = 0.75
"""Between two looks at the ledger and the queues, each of which costs as much as a small batch."""


class StalledError(Exception):
    """Rows stay in the queue, or a driver does not end, although there was time."""


class EndedError(Exception):
    """A driver has ended, and production would not start another one."""


def is_final(error: BaseException | None) -> bool:
    """Return whether production starts no other driver after one that ended with this error.

    A job that raises a JobError aborts its own operation (cluster/abort_own_operation.py). So does
    a superseded one, unless a later attempt of the same operation has superseded it, which runs
    then. After any other exception, and after `kill -9`, YTsaurus starts another attempt of the
    driver (node/attempt.py).
    """
    return isinstance(error, JobError)


@dataclass
class Life:
    """One driver."""

    context: JobContext
    spark: SparkSession
    error: BaseException | None = None
    """What has ended it by itself: a refusal, or the failures that the supervisor allows."""
    failures: int = 0
    """Failures that the supervisor has counted, which `most_failures` limits."""
    outages: int = 0
    """Times that it found the cluster away."""
    _stop: StopSignal = field(default_factory=StopSignal)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the life; its first request comes from another thread."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with _heard(self):
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
        tablets = Tablets(jvm_of(self.spark), own.settings)
        supervise(job, _Runner(own, self.spark, tablets, self._stop, life=self), self._stop)

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

    def end(self, seconds: float = PATIENCE) -> None:
        """Stop it between two batches, and wait. Raises StalledError."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                raise StalledError("a driver does not stop")


@dataclass
class _Runner(QueryRunner):
    """Counts the queries that end because the cluster is away."""

    life: Life | None = None

    def run(self) -> None:
        """Run one query."""
        try:
            super().run()
        except OutageError:
            assert self.life is not None
            self.life.outages += 1
            raise


class _Ear(logging.Handler):
    """Counts the failures in the log of one life: the supervisor says each one that it counts."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life, self._thread = life, threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        is_own = record.thread == self._thread
        self._life.failures += is_own and record.getMessage().startswith(Event.FAILURE)


@contextmanager
def _heard(life: Life) -> Iterator[None]:
    """Count the failures of a life that runs in this thread."""
    log, ear = logging.getLogger("job"), _Ear(life)
    log.addHandler(ear)
    try:
        yield
    finally:
        log.removeHandler(ear)


def until(
    is_over: Callable[[], Any], what: str, seconds: float = PATIENCE, pause: float = _POLL
) -> None:
    """Wait for something. Raises StalledError, which says what did not come."""
    deadline = time.monotonic() + seconds
    while not is_over():
        if time.monotonic() > deadline:
            raise StalledError(f"not in {seconds:.0f} s: {what}")
        time.sleep(pause)


def end_queries(spark: SparkSession) -> None:
    """Stop every query that a life has left, and forget the states that the JVM holds."""
    for query in spark.streams.active:
        with suppress(Exception):  # it may hang in a request that is never answered
            query.stop()
    unload_states(spark)


def unload_states(spark: SparkSession) -> None:
    """Unload the state stores: the next case has other states under the same paths."""
    package = jvm_of(spark).org.apache.spark.sql.execution.streaming.state
    getattr(getattr(package, "StateStore$"), "MODULE$").stop()
