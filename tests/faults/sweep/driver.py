"""A driver of the sweep: a job in a thread, whose failures and outages are counted."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from tests.support import state_stores
from tests.support.job_thread import JobThread
from tests.support.waiting import eventually
from ytstream.connector.tablet_transactions import Tablets
from ytstream.errors import JobError, OutageError
from ytstream.job import JobContext
from ytstream.log import Event
from ytstream.query.supervisor import QueryRunner

SLOWER = float(os.environ.get("SLOWER", "1"))
"""How many times slower than alone this machine is, since other work runs on it: every limit of
time is so much longer. The page says what the limits are, so no result is written then."""
PATIENCE = 180.0 * SLOWER
"""Rows that are in no batch after so long are stalled: those of a job and of the listing alike."""
LOOK_SECONDS = 0.75
"""Between two checks of the ledger and the queues. A check costs as much as a small batch."""


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
class Driver(JobThread):
    """One driver of a case."""

    failures: int = 0
    """Failures that the supervisor has counted, which `most_failures` limits."""
    outages: int = 0
    """Times that it found the cluster away."""

    def _run(self) -> None:
        with _heard(self):
            super()._run()

    def _runner(self, own: JobContext, tablets: Tablets) -> QueryRunner:
        return _Runner(own, self.spark, tablets, self._stop, driver=self)

    def end(self, seconds: float | None = PATIENCE) -> None:
        """Stop it between two batches, and wait. Raises StalledError."""
        super().end(seconds)
        if not self.is_over:
            raise StalledError("a driver does not stop")


@dataclass
class _Runner(QueryRunner):
    """Counts the queries that end because the cluster is away."""

    driver: Driver | None = None

    def run(self) -> None:
        """Run one query."""
        try:
            super().run()
        except OutageError:
            assert self.driver is not None
            self.driver.outages += 1
            raise


class _Ear(logging.Handler):
    """Counts the failures in the log of one driver: the supervisor says each one that it counts."""

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self._driver, self._thread = driver, threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        is_own = record.thread == self._thread
        self._driver.failures += is_own and record.getMessage().startswith(Event.FAILURE)


@contextmanager
def _heard(driver: Driver) -> Iterator[None]:
    """Count the failures of a driver that runs in this thread."""
    log, ear = logging.getLogger("job"), _Ear(driver)
    log.addHandler(ear)
    try:
        yield
    finally:
        log.removeHandler(ear)


def until(
    is_over: Callable[[], Any], what: str, seconds: float = PATIENCE, pause: float = 0.05
) -> None:
    """Wait for something. Raises StalledError, which says what did not come."""
    eventually(is_over, seconds, what=what, error=StalledError, pause=pause)


def end_queries(spark: SparkSession) -> None:
    """Stop every query that a driver has left, and forget the states that the JVM holds."""
    for query in spark.streams.active:
        with suppress(Exception):  # it may hang in a request that is never answered
            query.stop()
    state_stores.unload(spark)
