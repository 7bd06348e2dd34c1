"""`stop`, the lock of one instance, and outages: the parts that need no Spark."""

from __future__ import annotations

import argparse
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from minicluster.testing import Running
from tests.support.examples import example
from tests.support.helpers import (
    ContextOf,
    refusal,
    refusal_code,
)
from tests.support.waiting import eventually
from ytstream import Job, JobError, RestartableError
from ytstream.cluster.client import connect
from ytstream.commands import rewind
from ytstream.connector.tablet_transactions import Tablets
from ytstream.errors import FullAccountError, OutageError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import lock as locking
from ytstream.instance import stop_request
from ytstream.instance.lock import InstanceLock, alone
from ytstream.job import JobContext
from ytstream.ledger.positions import read_head
from ytstream.query import supervisor
from ytstream.query.outage_log import OutageLog
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner, supervise
from ytstream.recovery import start
from ytstream.recovery.epoch import Epoch
from ytstream.spark import session

pytestmark = pytest.mark.spark  # a JVM, without Spark


@pytest.fixture
def context(provisioned_of: ContextOf) -> JobContext:
    """Connect a job whose objects all exist."""
    return provisioned_of("transactional")


@contextmanager
def _process(context: JobContext, tablets: Tablets, *, hears: bool = True) -> Iterator[Epoch]:
    """Hold the lock as a job does, and end when the ledger asks for it."""
    over = threading.Event()
    epoch = Epoch()
    with alone(context):
        epoch, _ = start.prepare(context, tablets, epoch)

        def listen() -> None:
            while not over.wait(0.05):
                path = context.settings.ledger
                head = read_head(path, context.client.select_rows)
                if head is not None and head.stopped == epoch.number and hears:
                    stop_request.tell_end(context, epoch, supervisor.STOPPED)
                    return

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield epoch
        finally:
            over.set()
            thread.join()


def test_a_job_that_runs_is_asked_and_says_how_it_ended(
    context: JobContext, tablets: Tablets
) -> None:
    said: list[str] = []
    with _process(context, tablets):
        ended = stop_request.stop(context, said.append)
    assert said == ["asked the job to finish its batch and stop; an idle job checks every 15 s"]
    assert ended == f"the job has ended: {supervisor.STOPPED}"


def test_what_an_older_process_says_meanwhile_is_no_answer(
    context: JobContext, tablets: Tablets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen one thaws and ends between two looks, while the newer one finishes its batch."""
    older = start.claim(context, tablets, Epoch())
    with _process(context, tablets, hears=False) as epoch:
        ends = iter([(older, "failed: another instance has started"), (epoch, supervisor.STOPPED)])

        def between_looks(_: float) -> None:
            stop_request.tell_end(context, *next(ends))

        monkeypatch.setattr(
            stop_request, "time", SimpleNamespace(sleep=between_looks, monotonic=time.monotonic)
        )
        ended = stop_request.stop(context, lambda _: None)
    assert ended == f"the job has ended: {supervisor.STOPPED}"


def test_two_stops_at_once_hear_the_same(context: JobContext, tablets: Tablets) -> None:
    answers: list[str] = []

    def ask() -> None:
        answers.append(stop_request.stop(context, lambda _: None))

    with _process(context, tablets):
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [f"the job has ended: {supervisor.STOPPED}"] * 2


def test_a_job_that_does_not_run(context: JobContext, tablets: Tablets) -> None:
    assert stop_request.stop(context, print) == "the job does not run"
    with _process(context, tablets):
        stop_request.stop(context, lambda _: None)
    assert "does not run; the last time it ended: stopped" in stop_request.stop(context, print)


def test_a_job_that_is_killed_meanwhile(context: JobContext, tablets: Tablets) -> None:
    lock = InstanceLock(context.client, context.settings.consumer)
    lock.acquire(print)
    start.prepare(context, tablets, Epoch())
    text = refusal(lambda: stop_request.stop(context, lambda _: lock.release()))
    assert "has not said how it ended: it was killed" in text


def test_a_job_that_a_command_has_moved_was_not_killed(
    context: JobContext, tablets: Tablets, monkeypatch: pytest.MonkeyPatch
) -> None:
    start.prepare(context, tablets, Epoch())
    monkeypatch.setattr(session, "open_tablets", lambda _: tablets)
    given = {"to": "latest", "rows": (), "overwrite": False, "totals": None, "dry_run": False}
    assert rewind.COMMAND.run is not None
    rewind.COMMAND.run(context, argparse.Namespace(**given))
    head = read_head(context.settings.ledger, context.client.select_rows)
    assert head is not None
    ended = stop_request.end_of(context, head.owner)
    assert ended is not None
    assert (ended.how, ended.code) == ("moved by `rewind`, and not started since", "")


def test_a_stop_of_a_former_epoch_does_not_reach_the_next_process(
    context: JobContext, tablets: Tablets
) -> None:
    epoch, _ = start.prepare(context, tablets, Epoch())
    row = {"kind": "stop", "number": 0, "epoch": epoch.number, "batch": -1, "ended": 0}
    context.client.insert_rows(context.settings.ledger, [row])
    runner = QueryRunner(context, cast(Any, None), tablets, StopSignal(), epoch)
    runner.hear_stop()
    assert runner.stop.is_set()
    runner.stop.clear()
    runner.epoch, _ = start.prepare(context, tablets, Epoch())
    runner.hear_stop()
    assert not runner.stop.is_set()


@pytest.mark.thorough
def test_the_lock_is_kept_by_its_own_pings_and_taken_again_when_it_expired(
    context: JobContext, cluster: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "PING_SECONDS", 0.05)
    other = InstanceLock(context.client, context.settings.consumer)
    with alone(context):
        (first,) = other.holders()
        cluster.client.clock.advance(20)
        time.sleep(0.5)
        cluster.client.clock.advance(20)
        assert [holder[0] for holder in other.holders()] == [first[0]]
        cluster.client.clock.advance(60)
        eventually(lambda: [one for one in other.holders() if one[0] != first[0]], 10)
        assert (
            refusal_code(lambda: other.acquire(lambda _: time.sleep(0.2)))
            == ErrorCode.ANOTHER_INSTANCE
        )


def test_another_lock_on_the_folder_is_named_and_not_waited_for_for_ever(
    context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "WAIT_SECONDS", 0.3)
    client: Any = context.client
    folder = context.settings.consumer.rpartition("/")[0]
    said: list[str] = []
    with client.Transaction() as transaction:
        client.lock(folder, mode="exclusive")
        lock = InstanceLock(connect(context.settings), context.settings.consumer)
        text = refusal(lambda: lock.acquire(said.append))
    assert f"transaction {transaction.transaction_id} (exclusive)" in text
    assert said[0].startswith(f"waiting: {folder} is locked by transaction")


class _Runner:
    """Ends each query as the list says: an exception, or None for a good end."""

    def __init__(self, *ends: Exception | None, progress: bool = False) -> None:
        self.ends, self.has_progressed, self.starts = list(ends), progress, 0
        self.is_idle, self.refused = False, None

    def run(self) -> None:
        self.starts += 1
        if (end := self.ends.pop(0)) is not None:
            raise end

    def hear_stop(self) -> None:
        """No command asks it to stop."""


@pytest.fixture
def job() -> Job:
    """Declare a job that gives up at its third failure and starts again without a pause."""
    return replace(example("transactional", "map").job, most_failures=3, first_pause_seconds=0.0)


FAILURE = RestartableError("the tablet is not mounted")


def _supervised(job: Job, *ends: Exception | None, progress: bool = False) -> _Runner:
    """Supervise until the ends of queries are used up; then a refusal comes."""
    runner = _Runner(*ends, JobError("that was all"), progress=progress)
    assert (
        refusal(lambda: supervise(job, cast(QueryRunner, runner), StopSignal())) == "that was all"
    )
    return runner


def test_outages_are_waited_for_however_many(job: Job) -> None:
    runner = _supervised(job, *[OutageError("nobody answers")] * 50)
    assert runner.starts == 51


def test_a_day_of_outages_is_waited_for(job: Job) -> None:
    """A try a minute: two to the power of their number is no float any more."""
    slow = replace(job, first_pause_seconds=1e-9, longest_pause_seconds=0.0)
    runner = _supervised(slow, *[OutageError("nobody answers")] * 1440)
    assert runner.starts == 1441


def test_an_outage_ends_with_the_next_batch(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    """It is told again, and not as one since the last time that the cluster was away."""
    caplog.set_level("INFO", logger="job")
    _supervised(job, *[OutageError("nobody answers")] * 2, progress=True)
    assert len(caplog.messages) == 2
    caplog.clear()
    _supervised(job, *[OutageError("nobody answers")] * 2)
    assert len(caplog.messages) == 1


def test_failures_before_an_outage_were_its_beginning(job: Job) -> None:
    _supervised(job, FAILURE, FAILURE, OutageError("nobody answers"), FAILURE, FAILURE)


def test_failures_with_a_batch_in_between_do_not_add_up(job: Job) -> None:
    _supervised(job, *[FAILURE] * 10, progress=True)
    runner = cast(QueryRunner, _Runner(*[FAILURE] * 10))
    assert refusal_code(lambda: supervise(job, runner, StopSignal())) == ErrorCode.GAVE_UP


def test_an_outage_is_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="job")
    outage = OutageLog(100.0)
    for now in (100.0, 101.0, 130.0, 161.0, 200.0, 222.0):
        outage.tell(OutageError("nobody answers"), now)
    assert outage.count == 6
    assert caplog.messages == [
        f"waiting for the cluster for {seconds} s now: nobody answers" for seconds in (0, 61, 122)
    ]


def test_a_full_account_is_said_every_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="job")
    outage = OutageLog(0.0)
    outage.tell(OutageError("nobody answers"), 0.0)
    for now in range(30, 1300, 30):
        outage.tell(FullAccountError('Account "tmp" is full', "tmp"), now)
    assert caplog.messages == [
        "waiting for the cluster for 0 s now: nobody answers",
        *(
            f'waiting for room in the account for {seconds} s now: Account "tmp" is full'
            for seconds in (30, 630, 1230)
        ),
    ]


def test_an_outage_is_said_again_during_a_long_pause(
    job: Job, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", logger="job")
    minutes = itertools.count(step=60)
    clock = SimpleNamespace(monotonic=lambda: next(minutes))
    monkeypatch.setattr(supervisor, "time", clock)
    stop = StopSignal()
    monkeypatch.setattr(stop, "wait", lambda _: None)
    slow = replace(job, first_pause_seconds=300.0, longest_pause_seconds=300.0)
    runner = cast(QueryRunner, _Runner(OutageError("nobody answers"), JobError("that was all")))
    assert refusal(lambda: supervise(slow, runner, stop)) == "that was all"
    assert caplog.messages == [
        f"waiting for the cluster for {seconds} s now: nobody answers"
        for seconds in (60, 180, 300, 420)
    ]


def test_a_stop_during_an_outage_ends_the_wait(job: Job) -> None:
    stop = StopSignal()
    slow = replace(job, first_pause_seconds=60.0)
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    supervise(slow, cast(QueryRunner, _Runner(OutageError("nobody answers"))), stop)
    assert time.monotonic() - began < 30
