"""The supervisor: starts again after a failure, gives up after several, stops when told."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.ytstream.examples import example
from tests.ytstream.helpers import StreamOf, another_process, refusal, unconnected
from ytstream import Job, JobError, RestartableError
from ytstream.errors import SupersededError
from ytstream.query.batch import Batch
from ytstream.query.supervisor import Life, _drain, supervise
from ytstream.recovery import before_start
from ytstream.recovery.lock import InstanceLock
from ytstream.tablets import Tablets


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


def test_a_failure_after_a_stop_is_not_swallowed() -> None:
    stop = threading.Event()

    def one_query() -> None:
        stop.set()
        raise RestartableError("batch 7 failed")

    with pytest.raises(RestartableError, match="batch 7 failed"):
        supervise(example("transactional", "map").job, one_query, stop)


def test_a_failure_while_draining_is_raised() -> None:
    query = cast(StreamingQuery, SimpleNamespace(isActive=False))
    batch = cast(Batch, SimpleNamespace(failure=RestartableError("batch 7 failed")))
    with pytest.raises(RestartableError, match="batch 7 failed"):
        _drain(query, batch, lambda: None)


class _LostLater(InstanceLock):
    """A lock that is held when the query starts and lost when it runs."""

    def __init__(self) -> None:
        self.looks = 0

    @property
    def is_held(self) -> bool:
        self.looks += 1
        return self.looks == 1


@pytest.mark.spark
def test_a_lost_lock_ends_the_query(stream_of: StreamOf) -> None:
    stream = stream_of("at_least_once")
    life = Life(stream.connection, stream.spark, stream.tablets, _LostLater(), threading.Event())
    assert "the instance lock was lost" in refusal(life.run)
    assert not stream.spark.streams.active


def test_nothing_is_recovered_without_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(before_start, "prepare", lambda *_: pytest.fail("recovery ran"))
    connection = unconnected("transactional")
    lock = cast(InstanceLock, SimpleNamespace(is_held=False))
    life = Life(connection, cast(SparkSession, None), cast(Tablets, None), lock, threading.Event())
    assert "the instance lock was lost" in refusal(life.run)


@pytest.mark.spark
def test_a_process_whose_epoch_is_over_starts_no_query(stream_of: StreamOf) -> None:
    """It would have to raise the epoch from its own, and that is not the newest any more."""
    stream = stream_of("transactional")
    lock = cast(InstanceLock, SimpleNamespace(is_held=True))
    stream.recover()
    life = Life(
        stream.connection, stream.spark, stream.tablets, lock, threading.Event(), stream.epoch
    )
    another_process(stream).recover()
    starts: list[int] = []

    def one_query() -> None:
        starts.append(len(starts))
        life.run()

    with pytest.raises(SupersededError, match="has started: epoch 2 of process"):
        supervise(stream.connection.job, one_query, threading.Event())
    assert len(starts) == 1
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
        Life(stream.connection, stream.spark, stream.tablets, lock, stop).run()
    assert "stopped; the next start continues from here" in caplog.text
    assert not stream.spark.streams.active
    another_process(stream).drain()
    assert stream.is_exact()
