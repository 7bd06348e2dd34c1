"""The supervisor: starts again after a failure, gives up after several, stops when told."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from logging import INFO, WARNING
from types import SimpleNamespace
from typing import Any, ClassVar, cast
from unittest.mock import MagicMock

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.examples import example
from tests.support.helpers import (
    SILENT,
    StreamOf,
    another_process,
    refusal,
    refusal_code,
    unconnected,
)
from ytstream import Job, JobError, RestartableError
from ytstream.connector.tablet_transactions import Tablets
from ytstream.errors import OutageError, StalledError, SupersededError
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import batch_history
from ytstream.ledger.ledger_rows import Head
from ytstream.outputs.tablet_overflow import TabletOverflow
from ytstream.query import pace as paces
from ytstream.query import supervisor
from ytstream.query.batch import Batch
from ytstream.query.batch_outcome import BatchOutcome, BatchOutcomes
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import STOPPED, STOPPED_IN_A_BATCH, QueryRunner, supervise
from ytstream.recovery.start import StartPlan


@pytest.fixture
def job() -> Job:
    """Declare a job that gives up at its third failure and starts again without a pause."""
    return replace(example("transactional", "map").job, most_failures=3, first_pause_seconds=0.0)


def _runner(one_query: Callable[[], None], *, is_idle: bool = False) -> QueryRunner:
    runner = SimpleNamespace(
        run=one_query,
        has_progressed=False,
        is_idle=is_idle,
        hear_stop=lambda: None,
        refused=None,
    )
    return cast(QueryRunner, runner)


def test_it_gives_up_after_as_many_failures_as_the_job_allows(job: Job) -> None:
    starts: list[int] = []

    def one_query() -> None:
        starts.append(len(starts))
        raise RestartableError("the tablet is not mounted")

    text = refusal(lambda: supervise(job, _runner(one_query), StopSignal()))
    assert len(starts) == 3
    assert "gave up after 3 failures and no batch in between" in text
    assert "the last: the tablet is not mounted" in text
    assert "committed rows are kept" in text


def test_a_refused_batch_is_looked_at_before_the_job_gives_up(job: Job) -> None:
    """Its keys are looked at by one query more; without that the error names no way on."""
    starts: list[int] = []

    def one_query() -> None:
        starts.append(len(starts))
        if runner.refused is not None:
            raise JobError("batch 3-7 is too large for its tables")
        runner.refused = TabletOverflow("3-7", {}) if len(starts) == 3 else None
        raise RestartableError("Transaction affects too many rows in tablet")

    runner = _runner(one_query)
    assert "too large for its tables" in refusal(lambda: supervise(job, runner, StopSignal()))
    assert len(starts) == 4


def test_a_look_at_a_refused_batch_that_fails_each_time_is_given_up(job: Job) -> None:
    starts: list[int] = []

    def one_query() -> None:
        starts.append(len(starts))
        raise RestartableError("the ledger does not stop changing")

    runner = _runner(one_query)
    runner.refused = TabletOverflow("3-7", {})
    assert refusal_code(lambda: supervise(job, runner, StopSignal())) == ErrorCode.GAVE_UP
    assert len(starts) == 4


@pytest.mark.parametrize("is_idle", [True, False])
def test_failures_an_hour_apart_count_if_they_are_of_one_batch(
    job: Job, monkeypatch: pytest.MonkeyPatch, is_idle: bool
) -> None:
    """Of a job without rows to read they do not add up over months."""
    stop = StopSignal()
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

    runner = _runner(one_query, is_idle=is_idle)
    if is_idle:
        assert supervise(job, runner, stop) == STOPPED
        assert len(starts) == 10
    else:
        assert refusal_code(lambda: supervise(job, runner, stop)) == ErrorCode.GAVE_UP


@pytest.mark.parametrize("kind", [JobError, SupersededError])
def test_a_refusal_is_not_tried_again(job: Job, kind: type[JobError]) -> None:
    starts: list[int] = []

    def one_query() -> None:
        starts.append(len(starts))
        raise kind("the job cannot continue")

    text = refusal(lambda: supervise(job, _runner(one_query), StopSignal()))
    assert text == "the job cannot continue"
    assert len(starts) == 1


def test_the_last_word_of_a_job_has_the_first_finding_of_a_list() -> None:
    """`status` and `why` show one line of it."""
    error = JobError("the job cannot continue:\nreference auctions //a: missing\n  -> make it")
    said = supervisor._in_one_line(error)
    assert said == "the job cannot continue: reference auctions //a: missing"
    assert supervisor._in_one_line(JobError("wrong", "correct it")) == "wrong"


def test_a_failure_after_a_stop_is_not_swallowed(job: Job) -> None:
    stop = StopSignal()

    def one_query() -> None:
        stop.set()
        raise RestartableError("batch 3-7 failed")

    with pytest.raises(RestartableError, match="batch 3-7 failed"):
        supervise(job, _runner(one_query), stop)


def test_a_batch_that_hangs_does_not_hinder_a_stop(
    job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="job")
    stop = StopSignal()

    def one_query() -> None:
        stop.set()
        raise StalledError("no task has ended")

    assert supervise(job, _runner(one_query), stop) == STOPPED_IN_A_BATCH
    assert caplog.record_tuples == [("job", WARNING, "the batch is given up: no task has ended")]


def test_a_query_that_spark_cannot_stop_does_not_hide_why_it_has_to_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`StreamingQuery.stop` raises after spark.sql.streaming.stopTimeout."""
    caplog.set_level("INFO", logger="job")

    def stop() -> None:
        raise StreamingQueryException("failed to stop within 60000 milliseconds")

    def stalled(*_: object) -> None:
        raise StalledError("no task has ended")

    nothing = (cast(SparkSession, None), cast(Tablets, None))
    runner = QueryRunner(unconnected("transactional"), *nothing, StopSignal())
    query = SimpleNamespace(isActive=True, stop=stop)
    for name in ("connect", "verify_mounted", "job_objects", "start", "choose_connector", "Batch"):
        monkeypatch.setattr(supervisor, name, MagicMock())
    monkeypatch.setattr(
        supervisor,
        "pipeline",
        SimpleNamespace(
            flow_of=lambda *_: SimpleNamespace(untraceable=""),
            start=lambda *_, **__: (query, MagicMock(pace=None)),
        ),
    )
    monkeypatch.setattr(QueryRunner, "read_reference", lambda _: None)
    monkeypatch.setattr(QueryRunner, "_follow", stalled)
    with pytest.raises(StalledError):
        runner.run()
    (said,) = (record for record in caplog.records if "does not end the batch" in record.message)
    assert (
        said.message
        == "Spark does not end the batch under way: failed to stop within 60000 milliseconds"
    )
    assert said.levelname == "WARNING"


def test_what_a_start_skips_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="job")
    nothing = (cast(SparkSession, None), cast(Tablets, None))
    runner = QueryRunner(unconnected("transactional"), *nothing, StopSignal())
    for name in ("connect", "verify_mounted"):
        monkeypatch.setattr(supervisor, name, MagicMock())
    started = SimpleNamespace(
        flow_of=lambda *_: SimpleNamespace(untraceable=""),
        start=lambda *_, **__: (MagicMock(), MagicMock()),
    )
    monkeypatch.setattr(supervisor, "pipeline", started)
    plan = StartPlan([], Head(), ("first read",), ("2 rows were trimmed",))
    begun = SimpleNamespace(claim=lambda *_: runner.epoch, start=lambda *_, **__: plan)
    monkeypatch.setattr(supervisor, "start", begun)
    monkeypatch.setattr(supervisor, "choose_connector", MagicMock())
    for name in ("read_reference", "_follow"):
        monkeypatch.setattr(QueryRunner, name, lambda *_: None)
    runner.run()
    assert caplog.record_tuples == [
        ("job", INFO, "recovery: first read"),
        ("job", WARNING, "recovery: 2 rows were trimmed"),
    ]


@pytest.mark.parametrize(
    ("end", "rows"),
    [
        (None, 8_000),
        (RestartableError("its transaction has ended"), 4_000),
        (StreamingQueryException("the commit failed"), 4_000),
        (OutageError("the cluster is away"), 8_000),
    ],
)
def test_the_next_query_begins_where_the_last_one_was(
    monkeypatch: pytest.MonkeyPatch, end: Exception | None, rows: int
) -> None:
    """The first query of a process asks the ledger; one that has failed made batches too large."""
    began: list[int] = []
    nothing = (cast(SparkSession, None), cast(Tablets, None))
    context = unconnected("transactional")
    context = replace(context, settings=replace(context.settings, batch_seconds=5.0))
    runner = QueryRunner(context, *nothing, StopSignal())

    def start(*_: Any, rows_at_first: int, **__: Any) -> tuple[Any, Any]:
        began.append(rows_at_first)
        return MagicMock(isActive=False), MagicMock(pace=paces.first(5.0, 10**6, 8_000))

    def follow(*_: object) -> None:
        if end is not None:
            raise end

    for name in ("connect", "verify_mounted", "choose_connector", "job_objects", "JobReferences"):
        monkeypatch.setattr(supervisor, name, MagicMock())
    flow = SimpleNamespace(untraceable="")
    monkeypatch.setattr(
        supervisor, "pipeline", SimpleNamespace(flow_of=lambda *_: flow, start=start)
    )
    begun = StartPlan([], Head(), (), ())
    steps = SimpleNamespace(claim=lambda *_: runner.epoch, start=lambda *_, **__: begun)
    monkeypatch.setattr(supervisor, "start", steps)
    last = [{"state": {"limit": 3_000}}]
    monkeypatch.setattr(batch_history, "newest", lambda *_: last)
    monkeypatch.setattr(QueryRunner, "read_reference", lambda _: None)
    monkeypatch.setattr(QueryRunner, "_follow", follow)
    for _ in range(2):
        with suppress(RestartableError):
            runner.run()
    assert began == [3_000, rows]


def test_a_wish_that_no_batch_can_meet_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    nothing = (cast(SparkSession, None), cast(Tablets, None))
    runner = QueryRunner(unconnected("transactional"), *nothing, StopSignal())
    slow = replace(paces.first(0.5, 10**6), seen=((1_000, 1.0), (100_000, 2.0)), rows=100_000)
    for pace in (None, paces.first(0.5, 10**6), slow, slow):
        runner._warn_of_pace(pace)
    (said,) = caplog.messages
    assert said.startswith("batch_seconds = 0.5 cannot be met")


def test_a_failure_while_draining_is_raised() -> None:
    """The query is over when the loop looks, and a stop was asked for."""
    stop = StopSignal()
    stop.set()
    nothing = (cast(SparkSession, None), cast(Tablets, None))
    runner = QueryRunner(unconnected("transactional"), *nothing, stop)
    query = cast(StreamingQuery, SimpleNamespace(isActive=False, _jsq=SILENT))
    outcome = BatchOutcome("3-7", failure=RestartableError("its queue"))
    failed = SimpleNamespace(outcomes={7: outcome}, static_tables=MagicMock(), archives=None)
    with pytest.raises(RestartableError, match=r"^its queue$"):
        runner._follow(query, cast(Batch, failed))


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("the tablet is on strike", "batch 3-7: the tablet is on strike"),
        (
            "[CAST_INVALID_INPUT] 'x'",
            "the job cannot continue: batch 3-7: [CAST_INVALID_INPUT] 'x'",
        ),
    ],
)
def test_a_failure_of_sparks_names_the_batch(cause: str, said: str) -> None:
    """The log has no other line of a batch that has failed."""
    nothing = (cast(SparkSession, None), cast(Tablets, None))
    runner = QueryRunner(unconnected("transactional"), *nothing, StopSignal())
    query = cast(StreamingQuery, SimpleNamespace(isActive=False, _jsq=SILENT))
    outcome = BatchOutcome("3-7", failure=StreamingQueryException(cause))
    failed = SimpleNamespace(outcomes={7: outcome}, static_tables=MagicMock(), archives=None)
    with pytest.raises((RestartableError, JobError)) as caught:
        runner._follow(query, cast(Batch, failed))
    assert str(caught.value).splitlines()[0] == said


@pytest.mark.parametrize(("outcomes", "idle"), [({}, True), ({7: BatchOutcome("3-7")}, False)])
def test_a_batch_that_spark_has_not_finished_is_no_idle_end(
    monkeypatch: pytest.MonkeyPatch, outcomes: BatchOutcomes, idle: bool
) -> None:
    """SPYT commits after the batch's function: its failure counts, whatever time has passed."""
    nothing = (cast(SparkSession, None), cast(Tablets, None))
    runner = QueryRunner(unconnected("transactional"), *nothing, StopSignal())
    runner.impatient = MagicMock()
    monkeypatch.setattr(supervisor, "Watchdog", lambda *_, **__: MagicMock(is_idle=True))
    for name in ("ProgressMonitor", "IdleSignal", "CapacityCheck"):
        found = MagicMock()
        found.return_value.report.return_value = False
        monkeypatch.setattr(supervisor, name, found)
    monkeypatch.setattr(runner, "teller", MagicMock())
    states = itertools.chain([True], itertools.repeat(False))

    class Query:
        isActive = property(lambda _: next(states))  # noqa: N815
        status: ClassVar = {"isTriggerActive": True}

        def awaitTermination(self) -> None:  # noqa: N802
            return

    failed = SimpleNamespace(outcomes=outcomes, static_tables=MagicMock(), archives=None, disk=None)
    with pytest.raises(RestartableError, match="ended unexpectedly"):
        runner._follow(cast(StreamingQuery, Query()), cast(Batch, failed))
    assert runner.is_idle is idle


@pytest.mark.spark
def test_a_process_whose_epoch_is_over_starts_no_query(stream_of: StreamOf) -> None:
    """It would have to raise the epoch from its own, and that is not the newest any more."""
    stream = stream_of("transactional")
    stream.recover()
    stop = StopSignal()
    runner = QueryRunner(stream.context, stream.spark, stream.tablets, stop, stream.epoch)
    another_process(stream).recover()
    with pytest.raises(SupersededError, match="has started: epoch 2 of process"):
        runner.run()
    assert not stream.spark.streams.active


@pytest.mark.thorough
@pytest.mark.spark
def test_a_stop_lets_the_query_end_and_the_next_start_continues(stream_of: StreamOf) -> None:
    stream = stream_of("transactional")
    stream.send(200)
    stop = StopSignal()
    stop.set()
    QueryRunner(stream.context, stream.spark, stream.tablets, stop).run()
    assert not stream.spark.streams.active
    another_process(stream).drain()
    assert stream.is_exact()
