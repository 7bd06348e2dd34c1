"""Keeps the query running: one instance, recovery before every start, back-off, a graceful stop."""

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from . import pipeline, provision, recovery
from .cluster import connect, explained
from .errors import JobError, RestartableError
from .failures import explained_spark
from .inputs import lifetime
from .lock import InstanceLock
from .monitor import Monitor, say
from .session import open_session
from .settings import Settings

#: The query is given up after this many failures within the window; on the cluster the operation's
#: own restarts (spark.ytsaurus.driver.maxFailures) come on top.
FAILURES = 5
WINDOW_SECONDS = 600.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
_POLL_SECONDS = 0.2


def _stop_on_signals(stop: threading.Event) -> None:
    """SIGTERM and SIGINT set ``stop``; a second signal is the same request, not a harder one."""

    def handle(number: int, _frame: FrameType | None) -> None:
        if not stop.is_set():
            say(f"{signal.Signals(number).name}: finishing the micro-batch, then stopping")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def run(settings: Settings) -> None:
    """Stream until stopped. Raises JobError for a refusal, or when the query failed too often."""
    stop = threading.Event()
    _stop_on_signals(stop)
    with alone(settings) as (client, lock):
        with explained(settings):
            settings = provision.sized(client, settings)
        say("starting Spark with SPYT (10 to 20 s)")
        spark = open_session(settings)
        _stop_on_signals(stop)  # again: PySpark has installed its own for SIGINT
        try:
            _supervise(partial(_one_query, client, spark, settings, lock, stop), stop)
        finally:
            spark.stop()


@contextmanager
def alone(settings: Settings) -> Iterator[tuple[Any, InstanceLock]]:
    """A client, and the lock that keeps other instances out. Raises JobError if one runs."""
    with explained(settings):
        client = connect(settings)
        provision.require(client, settings)
        lock = InstanceLock(client, settings.consumer)
        lock.acquire(say)
    try:
        yield client, lock
    finally:
        lock.release()


def _supervise(one_query: Callable[[], None], stop: threading.Event) -> None:
    failures: deque[float] = deque()
    while not stop.is_set():
        try:
            one_query()
        except RestartableError as error:
            now = time.monotonic()
            failures.append(now)
            while failures[0] < now - WINDOW_SECONDS:
                failures.popleft()
            if len(failures) >= FAILURES:
                raise JobError(
                    f"gave up after {FAILURES} failures in {WINDOW_SECONDS / 60:.0f} minutes; "
                    f"the last: {error}",
                    "mend the cause and start again: nothing that was committed is lost",
                ) from error
            pause = min(FIRST_PAUSE_SECONDS * 2 ** (len(failures) - 1), LONGEST_PAUSE_SECONDS)
            say(f"failure {len(failures)} of {FAILURES}: {error}; starting again in {pause:.0f} s")
            stop.wait(pause)


def _one_query(
    client: Any, spark: SparkSession, settings: Settings, lock: InstanceLock, stop: threading.Event
) -> None:
    """One life of the query: until stopped, or until its inputs are to be read anew."""
    with explained(settings):
        for note in recovery.prepare(client, settings):
            say(f"recovery: {note}")
    with explained(settings), explained_spark():
        query = pipeline.start(pipeline.result(spark, client, settings), settings)
    say(f"running: {', '.join(settings.queues)} -> {settings.output}")
    monitor, end = Monitor(query), time.monotonic() + lifetime(settings)
    try:
        while time.monotonic() < end and not stop.wait(_POLL_SECONDS):
            monitor.report()
            if not query.isActive:
                with explained_spark():
                    query.awaitTermination()  # raises what ended it
                raise RestartableError("the query ended by itself")
            if not lock.is_held:
                raise JobError(
                    "the instance lock was lost: the cluster did not answer pings",
                    "another instance may run by now; start again once the cluster answers",
                )
        _drain(query, monitor.report)
    finally:
        if query.isActive:
            query.stop()


def _drain(query: StreamingQuery, report: Callable[[], None]) -> None:
    """Let the running micro-batch finish, then stop.

    A trigger that begins in between spends its first milliseconds asking for the queues' ends.
    """
    with explained_spark():
        while query.isActive and query.status["isTriggerActive"]:
            time.sleep(_POLL_SECONDS)
        query.stop()
        report()
    say("stopped; the next start goes on from here")
