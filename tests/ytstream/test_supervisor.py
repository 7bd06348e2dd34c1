"""The supervisor: starts again after a failure, gives up after several, stops when told."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from tests.ytstream.examples import example
from tests.ytstream.helpers import StreamOf, refusal
from ytstream import Job, JobError, RestartableError
from ytstream.query.supervisor import Life, supervise
from ytstream.recovery.lock import InstanceLock


@pytest.fixture
def job() -> Job:
    """Declare a job that gives up at its third failure and starts again without a pause."""
    return replace(example("transactional", "map").job, most_failures=3, first_pause_seconds=0.0)


def test_it_gives_up_after_as_many_failures_as_the_job_allows(job: Job) -> None:
    starts: list[int] = []

    def one_query() -> None:
        starts.append(len(starts))
        raise RestartableError("the tablet is not mounted")

    text = refusal(lambda: supervise(job, one_query, threading.Event()))
    assert len(starts) == 3
    assert "gave up after 3 failures in 10 minutes; the last: the tablet is not mounted" in text
    assert "committed rows are kept" in text


def test_failures_of_a_former_period_do_not_count(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()
    starts: list[int] = []
    an_hour_apart = itertools.count(step=3600)
    clock = SimpleNamespace(monotonic=lambda: next(an_hour_apart))
    monkeypatch.setattr("ytstream.query.supervisor.time", clock)

    def one_query() -> None:
        starts.append(len(starts))
        if len(starts) == 10:
            stop.set()
            return
        raise RestartableError("the tablet is not mounted")

    supervise(job, one_query, stop)
    assert len(starts) == 10


def test_a_refusal_is_not_tried_again(job: Job) -> None:
    starts: list[int] = []

    def one_query() -> None:
        starts.append(len(starts))
        raise JobError("the job cannot continue")

    assert (
        refusal(lambda: supervise(job, one_query, threading.Event())) == "the job cannot continue"
    )
    assert len(starts) == 1


@pytest.mark.spark
def test_a_lost_lock_ends_the_query(stream_of: StreamOf) -> None:
    stream = stream_of("at_least_once")
    lock = cast(InstanceLock, SimpleNamespace(is_held=False))
    life = Life(stream.connection, stream.spark, lock, threading.Event())
    assert "the instance lock was lost" in refusal(life.run)
    assert not stream.spark.streams.active


@pytest.mark.spark
def test_a_stop_lets_the_query_end_and_the_next_start_continues(
    stream_of: StreamOf, caplog: pytest.LogCaptureFixture
) -> None:
    stream = stream_of("transactional")
    stream.send(200)
    stop = threading.Event()
    lock = cast(InstanceLock, SimpleNamespace(is_held=True))
    stop.set()
    with caplog.at_level("INFO", "job"):
        Life(stream.connection, stream.spark, lock, stop).run()
    assert "stopped; the next start continues from here" in caplog.text
    assert not stream.spark.streams.active
    stream.recover()
    stream.drain()
    assert stream.is_exact()
