"""A job that runs as `run` lets it, in a thread beside the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ytstream.cluster.client import connect
from ytstream.errors import JobError
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner, supervise
from ytstream_tools.testing.job_stream import PATIENCE_SECONDS, Stream

Wait = Callable[[Callable[[], bool]], None]


@contextmanager
def supervised(stream: Stream) -> Iterator[Wait]:
    """Run the job, stopped at the end; yield a function that waits. No error may end it."""
    with _running(stream) as (wait, errors):
        yield wait
    assert errors == []


def end_of(stream: Stream, is_running: Callable[[], bool], deed: Callable[[], None]) -> JobError:
    """Run the job, do something to it, and return the error that ends it."""
    with _running(stream) as (wait, errors):
        wait(is_running)
        deed()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not errors and time.monotonic() < deadline:
            time.sleep(0.1)
    (error,) = errors
    assert isinstance(error, JobError)
    return error


@contextmanager
def _running(stream: Stream) -> Iterator[tuple[Wait, list[BaseException]]]:
    """Run the job in a thread, stopped at the end; yield a function that waits, and its errors."""
    context, stop = stream.context, StopSignal()
    # A client of its own: a client keeps its transaction for all threads.
    own = replace(context, client=connect(context.settings))
    runner = QueryRunner(own, stream.spark, stream.tablets, stop)
    job = replace(context.job, first_pause_seconds=0.1, longest_pause_seconds=0.2)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            supervise(job, runner, stop)
        except BaseException as error:
            errors.append(error)

    def wait(is_over: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_over():
            assert not errors
            assert time.monotonic() < deadline
            time.sleep(0.1)  # tables and log are looked at from outside

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield wait, errors
    finally:
        stop.set()
        thread.join()
