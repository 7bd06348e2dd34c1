"""What operators hear of a real job: a process with the real SPYT, killed while rows come in."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.faults.two_drivers.job_site import PACKAGE
from tests.journeys.live_job import Live, live
from tests.support.jvm import submit_args
from tests.support.promtool import Series, fires
from ytstream.cluster.client import connect
from ytstream.errors import JobError
from ytstream.job import JobContext
from ytstream.sealing import completeness
from ytstream.sealing.completeness import COMPLETE_UNTIL
from ytstream_tools.demo.job_process import environment
from ytstream_tools.status import alert_rules

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.journey]

LIFE, DEATH = 35, 25
"""Minutes of the job's life, and of those after its death."""
ROWS = 80
"""Rows that come in a minute."""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A job that no driver runs yet."""
    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    with live(tmp_path) as found:
        yield found


# -- alerts


def test_a_driver_that_is_killed_fires_and_a_healthy_one_does_not(
    job: Live, tmp_path: Path
) -> None:
    """A minute of the series is a batch of the job, and when it is dead a scrape.

    The clock of this machine, by which rows have waited, is the test's own: it stays.
    """
    job.start()
    series = Series()
    with _exporter(job) as address:
        for minute in range(LIFE):
            job.send(ROWS)
            job.drain()
            _scrape(address, series, minute)
        job.kill()
        for minute in range(LIFE, LIFE + DEATH):
            job.send(ROWS)
            job.cluster.client.clock.advance(60)
            _scrape(address, series, minute)
    text = alert_rules.text(job.context.job, job.context.settings, Path("config/production.toml"))
    values, ours = series.values(LIFE + DEATH), "Ytstream.*"
    fires(tmp_path, text, values, set(), LIFE - 1, only=ours)
    wanted = {"YtstreamEndedWithoutStop", "YtstreamStalled"}
    fires(tmp_path, text, values, wanted, LIFE + DEATH - 1, only=ours)


@contextmanager
def _exporter(job: Live) -> Iterator[str]:
    """Run `metrics` beside the job; give its address."""
    with Popen(
        [sys.executable, "-m", PACKAGE, "metrics", "--port", "0"],
        env=environment(job.cluster.http, job.project), cwd=job.project, stderr=PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            said = iter(process.stderr.readline, "")
            yield next(
                found[0] for line in said if (found := re.search(r"http://\S+/metrics", line))
            )
        finally:
            process.terminate()


def _scrape(address: str, series: Series, minute: int) -> None:
    with urlopen(address) as answer:
        text = answer.read().decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series.note(minute, sample.name, sample.labels, sample.value)


# -- complete until


def test_complete_until_is_never_ahead_of_the_rows(
    job: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Follow it while the job lags, catches up, is killed and starts again.

    The minicluster shows a row as soon as it has a timestamp: without the margin for clusters that
    do not, a time that is ahead by one second is seen.
    """
    monkeypatch.setattr(completeness, "MARGIN", completeness.MARGIN * 0)
    job.send(3_000)
    with job.producer(ROWS, 0.5), _late_producer(job), _followed(job) as follower:
        job.start()  # it lags: rows have waited since before
        job.wait_for_batches(4)
    job.drain()
    behind = follower.polls
    with job.producer(ROWS, 0.5), _late_producer(job), _followed(job) as follower:
        job.wait_for_batches(2)
        job.kill()
        time.sleep(5)
        job.expire_the_lock()
        job.start()
        job.wait_for_batches(3)
    with _followed(job) as drained:
        job.drain()
        time.sleep(2)
    polls = [*behind, *follower.polls, *drained.polls]
    assert len(polls) > 20
    assert [poll for poll in polls if poll.missing] == []
    assert any(poll.waiting for poll in polls)
    # It went on with the rows, and to the last of them.
    assert len({poll.time for poll in polls}) > 5
    last = polls[-1]
    assert (last.waiting, last.older) == (0, len([*_rows(job.context)]))


@dataclass(frozen=True)
class Poll:
    """One look: what was said, and how many rows there were by then."""

    time: datetime
    older: int
    """Rows that are older: in the queue, and of these not in the outputs."""
    missing: int
    waiting: int
    """Rows of the queue in no output."""


@dataclass
class Follower:
    """Polls what is said, and counts."""

    context: JobContext
    polls: list[Poll] = field(default_factory=list)
    error: BaseException | None = None

    def run(self, is_over: threading.Event) -> None:
        """Poll until it is over."""
        try:
            while not is_over.wait(0.2):
                self._poll()
        except BaseException as error:  # the test's own thread raises it
            self.error = error

    def _poll(self) -> None:
        context = self.context
        written = context.client.get_attribute(context.settings.output, COMPLETE_UNTIL, None)
        said = [datetime.fromisoformat(written)] if written else []
        try:
            said.append(completeness.read(context).time)
        except JobError:  # it has never run
            return
        done, rows = _done(context), list(_rows(context))
        for time_ in said:
            older = [row for row in rows if row["$timestamp"] >> 30 < int(time_.timestamp())]
            missing = sum(not _is_done(row, done) for row in older)
            waiting = sum(not _is_done(row, done) for row in rows)
            self.polls.append(Poll(time_, len(older), missing, waiting))


@contextmanager
def _followed(job: Live) -> Iterator[Follower]:
    own = replace(job.context, client=connect(job.context.settings))
    follower, is_over = Follower(own), threading.Event()
    thread = threading.Thread(target=follower.run, args=(is_over,))
    thread.start()
    try:
        yield follower
    finally:
        is_over.set()
        thread.join()
    if follower.error is not None:
        raise follower.error


@contextmanager
def _late_producer(job: Live) -> Iterator[None]:
    """Write rows whose transaction is open for a second before it commits, again and again."""
    client: Any = connect(job.context.settings)
    queue, is_over = job.context.settings.queues[0], threading.Event()

    def produce() -> None:
        while not is_over.is_set():
            rows = job.sample.make(4, 1_000_000 + time.monotonic_ns() % 10**9)
            with client.Transaction(type="tablet"):
                client.insert_rows(queue, [{**row, "$tablet_index": 1} for row in rows])
                is_over.wait(1)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _rows(context: JobContext) -> Iterator[dict[str, Any]]:
    queue = context.settings.queues[0]
    columns = "[$tablet_index], [$row_index], [$timestamp], event_id"
    yield from context.client.select_rows(f"{columns} from [{queue}]")


def _done(context: JobContext) -> tuple[set[str], set[tuple[int, int]]]:
    """Return which rows are in the output, by their ids, and in `rejected`, by their places."""
    client, outputs = context.client, context.settings.outputs
    written = client.select_rows(f"event_id from [{outputs['output']}]")
    rejected = client.select_rows(f"tablet_index, row_index from [{outputs['rejected']}]")
    return (
        {row["event_id"] for row in written},
        {(row["tablet_index"], row["row_index"]) for row in rejected},
    )


def _is_done(row: dict[str, Any], done: tuple[set[str], set[tuple[int, int]]]) -> bool:
    return row["event_id"] in done[0] or (row["$tablet_index"], row["$row_index"]) in done[1]
