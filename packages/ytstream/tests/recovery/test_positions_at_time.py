"""`rewind to-time` finds rows, `drain` waits for them, `--dry-run` changes nothing; no JVM."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from minicluster import testing as minicluster
from minicluster.client import Client
from tests.support.examples import example
from tests.support.helpers import (
    ContextOf,
    recreate,
    refusal,
    refusal_code,
)
from tests.support.ledger_steps import LAST, minutes, read_to, write_ledger
from tests.support.read_requests import READS
from tests.support.status_steps import invoke, send, without_times
from ytstream import cli
from ytstream.commands.registry import registry
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance.lock import InstanceLock
from ytstream.instance.stop_request import stop, tell_end
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.ledger.ledger_rows import Move
from ytstream.recovery import positions_at_time
from ytstream.recovery.epoch import Epoch
from ytstream.recovery.repositioning import rehearse_rewind
from ytstream_tools.demo import demo_tables
from ytstream_tools.submitting import draining


def _places(context: JobContext, time: datetime) -> list[int]:
    named, _ = positions_at_time.places(context, time)
    queue = context.settings.queues[0]
    assert [place.rpartition("=")[0] for place in named] == [f"{queue}:{p}" for p in range(4)]
    return [int(place.rpartition("=")[2]) for place in named]


def _trim(context: JobContext, partition: int, row: int) -> None:
    client: Any = context.client
    client.trim_rows(context.settings.queues[0], partition, row)


def test_the_ledger_says_where_the_job_was(provisioned_of: ContextOf) -> None:
    """Batch 20 of 20 is the last: the even ones have read partition 0."""
    context = provisioned_of("transactional")
    without_times(context)
    send(context, 4 * 200)
    write_ledger(context, 20)
    assert _places(context, minutes(0)) == [100, 100, 0, 0]
    assert _places(context, minutes(1)) == [90, 100, 0, 0]
    assert _places(context, minutes(1.5)) == [90, 90, 0, 0]
    assert _places(context, minutes(19)) == [0, 10, 0, 0]


def test_a_move_after_the_time_is_undone(provisioned_of: ContextOf) -> None:
    """Rows of partitions 1 and 2 were skipped before batch 19: the time before knows of them."""
    context = provisioned_of("transactional")
    queue = context.settings.queues[0]
    without_times(context)
    send(context, 4 * 200)
    write_ledger(context, 20, (1.2, Move("skip", {queue: {1: (80, 90), 2: (5, 7)}})))
    assert _places(context, minutes(1.5)) == [90, 80, 5, 0]
    assert _places(context, minutes(1.1)) == [90, 90, 0, 0]


def test_trimmed_rows_are_named(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    queue = context.settings.queues[0]
    without_times(context)
    send(context, 4 * 200)
    write_ledger(context, 20)
    _trim(context, 0, 95)
    named, said = positions_at_time.places(context, minutes(1))
    assert named[0] == f"{queue}:0=95"
    assert f"{queue}, partition 0: rows 90 to 94 are trimmed" in said


def _sent(context: JobContext, cluster: minicluster.Running, counts: list[int]) -> list[datetime]:
    """Send rows at several times of the cluster's clock; return a time before each."""
    before = []
    for count in counts:
        cluster.client.clock.advance(10)
        before.append(datetime.fromtimestamp(cluster.client.clock.now() - 5, UTC))
        send(context, 4 * count)
    return before


def test_before_the_ledgers_first_batch_the_rows_times_tell(
    provisioned_of: ContextOf, cluster: minicluster.Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = provisioned_of("transactional")
    times = _sent(context, cluster, [300, 1, 500])
    # The cluster's clock is ahead of this one.
    monkeypatch.setattr(positions_at_time, "now", lambda: times[-1] + timedelta(hours=1))
    assert [_places(context, time)[0] for time in times] == [0, 300, 301]
    assert _places(context, times[-1] + timedelta(minutes=5)) == [801] * 4
    _trim(context, 0, 400)
    assert _places(context, times[1]) == [400, 300, 300, 300]


def test_a_time_before_the_first_row_or_after_the_last_says_from_where_it_reads(
    provisioned_of: ContextOf, cluster: minicluster.Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = provisioned_of("transactional")
    (before,) = _sent(context, cluster, [300])
    after = before + timedelta(minutes=1)
    monkeypatch.setattr(positions_at_time, "now", lambda: after + timedelta(hours=1))
    queue = context.settings.queues[0]
    _trim(context, 0, 100)
    named, said = positions_at_time.places(context, before)
    assert named == [f"{queue}:{p}={row}" for p, row in enumerate((100, 0, 0, 0))]
    assert said[1:] == [
        f"{queue}, partition {p}: no row came earlier; it is read from its first, row {row}"
        for p, row in enumerate((100, 0, 0, 0))
    ]
    _trim(context, 1, 300)
    named, said = positions_at_time.places(context, after)
    assert named == [f"{queue}:{p}=300" for p in range(4)]
    every = "every row came earlier; it is read from its end, row 300"
    none = "it has no row; the next one is row 300"
    assert said[1:] == [f"{queue}, partition {p}: {none if p == 1 else every}" for p in range(4)]


def test_a_time_after_the_last_batch_moves_nothing(provisioned_of: ContextOf) -> None:
    """Rows that wait are not skipped: the job had not read them then."""
    context = provisioned_of("transactional")
    queue = context.settings.queues[0]
    without_times(context)
    send(context, 4 * 200)
    write_ledger(context, 20)
    named, said = positions_at_time.places(context, LAST + timedelta(seconds=30))
    assert named == [f"{queue}:{p}={row}" for p, row in enumerate((100, 100, 0, 0))]
    assert said[-1] == f"{queue}: no batch has read it since then, so it is not moved"
    assert "not moved" not in "".join(positions_at_time.places(context, minutes(1.5))[1])


def test_a_slow_clock_of_the_driver_skips_no_row(
    provisioned_of: ContextOf, cluster: minicluster.Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its ledger the job had read rows before they came; a row that came later is next."""
    context = provisioned_of("transactional")
    times = _sent(context, cluster, [60, 140])
    monkeypatch.setattr(positions_at_time, "now", lambda: times[-1] + timedelta(hours=1))
    monkeypatch.setattr(__name__ + ".LAST", times[-1] - timedelta(minutes=1))
    write_ledger(context, 20)
    assert _places(context, times[1]) == [60, 60, 0, 0]
    queue = context.settings.queues[0]
    said = positions_at_time.places(context, times[1])[1]
    assert f"{queue}, partition 0: row 60 came" in "\n".join(said)


def test_a_queue_that_was_recreated_is_asked_itself(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    send(context, 4 * 200)
    write_ledger(context, 20)
    recreate(context.settings.queues[0], context.client)
    send(context, 4 * 5)
    assert _places(context, minutes(1)) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "at noon", ""]
)
def test_a_time_that_cannot_be_read_is_a_wrong_argument(time: str) -> None:
    assert refusal_code(lambda: positions_at_time.parsed([time])) == ErrorCode.USAGE


def test_the_first_time_of_all_is_before_every_row(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    send(context, 4 * 5)
    write_ledger(context, 2)
    assert _places(context, positions_at_time.parsed(["0001-01-01"])) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [(["{queue}:0=٣"], "cannot read"), (["{queue}:٠=3"], "cannot read")],
)
def test_a_row_that_is_not_named_in_digits_is_a_wrong_argument(
    provisioned_of: ContextOf, rows: list[str], said: str
) -> None:
    context = provisioned_of("transactional")
    send(context, 4 * 5)
    write_ledger(context, 2)
    named = [row.format(queue=context.settings.queues[0]) for row in rows]
    assert said in refusal(lambda: rehearse_rewind(context, "rows", named))


def test_a_time_that_nothing_knows_is_refused(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    without_times(context)
    send(context, 4 * 200)
    write_ledger(context, 20)
    assert _places(context, minutes(1.5)) == [90, 90, 0, 0]
    said = refusal(lambda: positions_at_time.places(context, minutes(100)))
    assert "no batch that the ledger keeps is as old" in said


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "10:00"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    assert "cannot read the time" in refusal(lambda: positions_at_time.parsed(text.split()))


def test_a_time_is_in_utc_unless_it_names_a_zone(provisioned_of: ContextOf) -> None:
    assert positions_at_time.parsed(["2026-11-21T10:00"]) == datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert positions_at_time.parsed(["2026-11-21", "10:00+03:00"]) == datetime(
        2026, 11, 21, 7, tzinfo=UTC
    )
    later = datetime.now(UTC) + timedelta(hours=1)
    said = refusal(lambda: positions_at_time.places(provisioned_of("transactional"), later))
    assert "is still to come" in said


# -- drain


@pytest.fixture
def running(provisioned_of: ContextOf) -> Iterator[tuple[JobContext, InstanceLock]]:
    """Connect a job whose process holds the lock, has read nothing, and has 80 rows before it."""
    context = provisioned_of("transactional")
    send(context, 80)
    lock = InstanceLock(context.client, context.settings.consumer)
    lock.acquire(print)
    read_to(context, 0)
    yield context, lock
    lock.release()


def _job(context: JobContext, lock: InstanceLock, end: int, *, is_killed: bool) -> None:
    """Read five rows of each partition at a time up to ``end``; then die, or stop if asked."""
    for row in range(5, end + 1, 5):
        time.sleep(0.1)
        read_to(context, row)
    while not is_killed:
        time.sleep(0.1)
        found = positions.read_head(context.settings.ledger, context.client.select_rows)
        if found is not None and found.stopped == found.epoch:
            tell_end(context, Epoch(found.epoch, found.owner), "stopped")
            break
    lock.release()


@pytest.mark.thorough
def test_drain_waits_for_the_rows_that_were_there_and_stops_the_job(
    running: tuple[JobContext, InstanceLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    context, lock = running
    monkeypatch.setattr(draining, "_POLL_SECONDS", 0.05)
    assert draining.rehearse(context).splitlines()[-2:] == [
        "80 rows would be read, then the job would stop",
        "nothing was changed",
    ]
    said: list[str] = []
    job = threading.Thread(target=_job, args=(context, lock, 20), kwargs={"is_killed": False})
    job.start()
    assert draining.drain(context, said.append) == "the job has ended: stopped"
    job.join()
    assert said[0].endswith("rows left of those that were there")
    assert "all rows that were there have been read" in said
    found = positions.read(context.client, context.settings)
    assert found.begun is not None
    assert found.begun.ends == {context.settings.queues[0]: dict.fromkeys(range(4), 20)}


def _ends_at_the_second_look(
    running: tuple[JobContext, InstanceLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the job read all, say how it ends and give its lock up, between two requests."""
    context, lock = running
    holders, looks = InstanceLock.holders, iter((False, True))

    def look(self: InstanceLock) -> Any:
        if next(looks, False):
            read_to(context, 20)
            tell_end(context, Epoch(3, "process 1 on host, abc"), "stopped")
            lock.release()
        return holders(self)

    monkeypatch.setattr(InstanceLock, "holders", look)


def test_drain_sees_what_a_job_has_read_in_its_last_moment(
    running: tuple[JobContext, InstanceLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    _ends_at_the_second_look(running, monkeypatch)
    said: list[str] = []
    draining.drain(running[0], said.append)
    assert said == ["all rows that were there have been read"]


def test_stop_sees_how_a_job_has_ended_in_its_last_moment(
    running: tuple[JobContext, InstanceLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    _ends_at_the_second_look(running, monkeypatch)
    assert stop(running[0], print) == "the job has ended: stopped"


def test_drain_says_what_is_left_by_a_job_that_dies(
    running: tuple[JobContext, InstanceLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    context, lock = running
    monkeypatch.setattr(draining, "_POLL_SECONDS", 0.05)
    job = threading.Thread(target=_job, args=(context, lock, 15), kwargs={"is_killed": True})
    job.start()
    said = refusal(lambda: draining.drain(context, print))
    job.join()
    assert "the job has ended, and 20 rows are left" in said


def test_drain_of_a_job_that_does_not_run_is_refused(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    assert refusal_code(lambda: draining.drain(context, print)) == ErrorCode.NOT_RUNNING


# -- --dry-run

READING = {
    "check", "status", "metrics", "page", "logs", "demo", "real", "tables", "confs", "alerts",
    "rehearse", "capture", "complete-until", "why", "adopt", "approve", "preview",
}  # fmt: skip
"""These change nothing on the cluster."""


def _takes_dry_run(command: str) -> bool:
    out = io.StringIO()
    with redirect_stdout(out), suppress(SystemExit):
        cli.parser("bids").parse_args([command, "--help"])
    return "--dry-run" in out.getvalue()


def test_every_command_that_changes_something_has_a_dry_run() -> None:
    commands = {*registry().commands}
    dry = {name for name in commands if _takes_dry_run(name)}
    assert dry.isdisjoint(READING)
    assert dry | READING >= commands
    assert "stop" in dry


def _unchanged(context: JobContext, tmp_path: Path, *words: str, command: str) -> None:
    """Run the command dry: the cluster gets no request that could change anything."""
    address = context.settings.proxy
    journal = Client(address).journal
    since = len(journal())
    assert invoke(context, tmp_path, *words, "--dry-run", command=command) == 0
    asked = {entry.method for entry in journal()[since:]}
    assert asked <= READS | {"get_current_user", "read_file"}


@pytest.mark.thorough
def test_a_dry_run_of_stop_says_whom_it_would_ask(
    running: tuple[JobContext, InstanceLock], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context, lock = running
    _unchanged(context, tmp_path, command="stop")
    said = capsys.readouterr().out
    assert "would be asked to finish its batch and end\nnothing was changed" in said
    found = positions.read_head(context.settings.ledger, context.client.select_rows)
    assert found is not None
    assert found.stopped != found.epoch
    lock.release()
    _unchanged(context, tmp_path, command="stop")
    assert capsys.readouterr().out == "the job does not run\nnothing was changed\n"


@pytest.mark.thorough
def test_a_dry_run_of_run_says_where_it_would_begin(
    provisioned_of: ContextOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = provisioned_of("transactional")
    send(context, 4 * 200)
    write_ledger(context, 20)
    _trim(context, 0, 150)
    said = refusal_of(context, tmp_path, capsys)
    assert "were trimmed before this job read them" in said
    write_ledger(context, 40)
    _unchanged(context, tmp_path, command="run")
    assert capsys.readouterr().out.endswith("nothing was changed\n")


def refusal_of(context: JobContext, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a dry run of `run` refuses."""
    assert invoke(context, tmp_path, "--dry-run", command="run") == 1
    return capsys.readouterr().err


def test_a_dry_run_of_rows_puts_none_into_the_queue(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    sample = example("transactional", "map").sample
    queue = context.settings.queues[0]
    said = demo_tables.fill(context, sample, 7, is_dry=True)
    assert said == f"7 sample rows would go into {queue}\nnothing was changed"
    assert demo_tables.rows_in(context.client, queue) == 0


def test_a_dry_run_of_provision_creates_nothing(
    context_of: ContextOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = context_of("transactional")
    assert invoke(context, tmp_path, "--dry-run", command="provision") == 0
    said = capsys.readouterr().out
    assert "run `provision`" in said
    assert said.endswith("nothing was changed\n")
    assert not context.client.exists(context.settings.ledger)


def test_a_dry_run_of_rewind_to_a_time_counts_the_rows(
    provisioned_of: ContextOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = provisioned_of("transactional")
    without_times(context)
    send(context, 4 * 200)
    write_ledger(context, 20)
    before = list(context.client.select_rows(f"* from [{context.settings.ledger}]"))
    words = ("to-time", f"{minutes(1.5):%Y-%m-%dT%H:%M:%S}", "--dry-run")
    code = invoke(context, tmp_path, *words, command="rewind")
    said = capsys.readouterr()
    assert code == 0, said.err
    queue = context.settings.queues[0]
    assert f"{queue}, partition 0: from row 100 to row 90" in said.out
    assert "20 rows would be read again, 0 skipped" in said.out
    assert before == list(context.client.select_rows(f"* from [{context.settings.ledger}]"))
