"""`fleet`: twelve jobs in different states on a minicluster, all of them told right; no JVM."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from yt.wrapper import VanillaSpecBuilder

from minicluster import testing as minicluster
from tests.support.examples import example, settings_of
from tests.support.server_errors import UNAVAILABLE_BY_HTTP
from tests.support.status_steps import head_of_batch, send, write_rows
from ytstream.cluster import operation
from ytstream.cluster.client import client_of, connect
from ytstream.errors.error_codes import ErrorCode
from ytstream.guarantees import guarantee_of
from ytstream.instance.lock import InstanceLock
from ytstream.instance.stop_request import tell_end
from ytstream.job import JobContext
from ytstream.ledger import archive_rows
from ytstream.ledger.archive_rows import ArchiveState
from ytstream.ledger.ledger_rows import Head, head_row, microseconds
from ytstream.ownership import job_marker, job_record
from ytstream.provisioning import job_objects
from ytstream.recovery.epoch import Epoch
from ytstream_tools import __main__ as light
from ytstream_tools.fleet import discovery, fleet_watch, reading, shown
from ytstream_tools.fleet.reading import FleetJob, JobState

FOLDER = "//home/fleet"
NEW_YEAR = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
MARK = "MARKED-VALUE"
"""In rows, texts of errors, and the token: it may come out nowhere."""


@pytest.fixture(scope="module")
def running() -> Iterator[minicluster.Running]:
    """Start a minicluster that runs operations."""
    with minicluster.start(operations=True) as cluster:
        yield cluster


class Jobs:
    """Makes jobs of one cluster."""

    def __init__(self, proxy: str) -> None:
        self.proxy, self.locks = proxy, list[InstanceLock]()

    def new(self, name: str, **settings: Any) -> JobContext:
        """Provision a job."""
        job = replace(example("transactional", "map", rejects=True).job, name=name)
        given = replace(settings_of(job, f"{FOLDER}/{name}", proxy=self.proxy), **settings)
        made = JobContext(connect(given), given, job, guarantee_of(job))
        job_objects.provision(made)
        return made

    def started(
        self, name: str, *, age: float = 0.0, record: bool = True, **settings: Any
    ) -> tuple[JobContext, Head]:
        """Let a job have done a batch so many seconds ago; its process is gone."""
        context = self.new(name, **settings)
        marker = job_marker.marker_of(context)
        head = head_of_batch(context, 1, marker=marker)
        ended = microseconds(datetime.now(UTC) - timedelta(seconds=age))
        write_rows(context, {**head_row(head), "ended": ended})
        if record:
            job_record.write(context)
        return context, head

    def running(self, name: str, **more: Any) -> JobContext:
        """Let a job's process hold its lock."""
        context, head = self.started(name, **more)
        lock = InstanceLock(context.client, context.settings.consumer)
        lock.acquire(print)
        self.locks.append(lock)
        holder = next(owner for _, owner, _ in lock.holders())
        owner = f"{holder.rpartition(',')[0]}, 0123abcd"
        ended = microseconds(datetime.now(UTC) - timedelta(seconds=more.get("age", 0.0)))
        write_rows(context, {**head_row(replace(head, owner=owner)), "ended": ended})
        return context


def _archived(context: JobContext) -> None:
    """Let the job have an archive whose last sealed period ended on the first day of 2026."""
    write_rows(context, archive_rows.state_row("history", ArchiveState(NEW_YEAR, NEW_YEAR)))
    declared = {"history": {"period": 3600, "lateness": 600}}
    context.client.set(f"{context.settings.ledger}/@{job_record.RECORD}/archives", declared)


def _operate(context: JobContext) -> str:
    spec = (
        VanillaSpecBuilder().begin_task("driver").command("sleep 600").job_count(1).end_task()
        .alias(context.settings.alias)
    )  # fmt: skip
    note = {
        "ledger": context.settings.ledger, "job": context.job.name, "commit": "0a1b2c",
        "repository": "https://git.example.com/bids", "runtime": "0.9.0",
    }  # fmt: skip
    spec = spec.spec({"annotations": {operation.NOTE: note}})
    client: Any = context.client
    return str(client.run_operation(spec, sync=False).id)


@pytest.fixture(scope="module")
def fleet(running: minicluster.Running) -> Iterator[tuple[Any, dict[str, FleetJob]]]:
    """Twelve jobs, and a table that is not one; read once."""
    jobs = Jobs(running.http)
    _archived(jobs.running("works"))
    waits = jobs.running("waits")
    send(waits, 8)
    behind = jobs.running("behind", max_rows_per_partition=1)
    send(behind, 12)
    stalled = jobs.running("stalled", age=3600.0)
    send(stalled, 4)
    restarts = jobs.running("restarts")
    for _ in range(4):
        job_record.write(restarts)
    stopped, head = jobs.started("stopped")
    tell_end(stopped, Epoch(head.epoch, head.owner), "stopped")
    failed, head = jobs.started("failed")
    tell_end(failed, Epoch(head.epoch, head.owner), f"failed: {MARK}", ErrorCode.REQUIRED_NULL)
    jobs.started("killed")
    jobs.new("new")
    old, head = jobs.started("old", record=False)
    tell_end(old, Epoch(head.epoch, head.owner), "stopped")
    client: Any = old.client
    unmounted, _ = jobs.started("unmounted")
    client.unmount_table(unmounted.settings.ledger, sync=True)
    client.unmount_table(stopped.settings.ledger, sync=True)
    client.create("map_node", f"{FOLDER}/stranger")
    client.copy(stopped.settings.ledger, f"{FOLDER}/stranger/ledger")
    for path in (stopped.settings.ledger, f"{FOLDER}/stranger/ledger"):
        client.mount_table(path, sync=True)
    client.create("table", f"{FOLDER}/stranger/other")
    submitted = jobs.new("submitted")
    id_ = _operate(submitted)
    ledgers = discovery.ledgers(client, [FOLDER])
    found = reading.Fleet(client).read(ledgers, discovery.operations(client), reading.now())
    yield client, {job.ledger.split("/")[4]: job for job in found}
    client.abort_operation(id_)
    for lock in jobs.locks:
        lock.release()


WANTED: Mapping[str, JobState] = {
    "works": JobState.RUNNING,
    "waits": JobState.RUNNING,
    "behind": JobState.BEHIND,
    "stalled": JobState.STALLED,
    "restarts": JobState.RUNNING,
    "stopped": JobState.STOPPED,
    "failed": JobState.FAILED,
    "killed": JobState.KILLED,
    "new": JobState.NEVER,
    "old": JobState.STOPPED,
    "unmounted": JobState.UNREADABLE,
    "stranger": JobState.FOREIGN,
    "submitted": JobState.STARTING,
}


@pytest.mark.thorough
def test_each_state_is_told(fleet: tuple[Any, dict[str, FleetJob]]) -> None:
    found = fleet[1]
    assert {name: job.state for name, job in found.items()} == WANTED


@pytest.mark.thorough
def test_figures_and_origins_are_those_of_each_job(
    fleet: tuple[Any, dict[str, FleetJob]],
) -> None:
    found = fleet[1]
    assert (found["waits"].lag, found["works"].lag, found["behind"].lag) == (8, 0, 12)
    assert found["restarts"].restarts == 4
    assert found["restarts"].alerts == ["YtstreamRestarts"]
    assert found["stalled"].alerts == ["YtstreamStalled"]
    assert found["works"].alerts == ["YtstreamPeriodNotSealed"]
    assert found["works"].archives == {"history": "2026-01-01T00:00:00Z"}
    assert "history until 2026-01-01T00:00:00Z" in shown.text([found["works"]])
    assert found["behind"].alerts == ["YtConsumerLagRows"]
    assert found["killed"].alerts == ["YtstreamEndedWithoutStop"]
    assert (found["failed"].why, found["unmounted"].why) == ("required_null", "not mounted")
    assert (found["old"].runtime, found["old"].job) == ("", "old")
    submitted = found["submitted"]
    assert (submitted.commit, submitted.repository, submitted.owner, submitted.runtime) == (
        "0a1b2c", "https://git.example.com/bids", "root", "0.9.0",
    )  # fmt: skip


def test_those_that_need_somebody_come_first(fleet: tuple[Any, dict[str, FleetJob]]) -> None:
    order = [job.state for job in fleet[1].values()]
    assert order == sorted(order, key=list(JobState).index)
    assert order[0] is JobState.FAILED
    calm = [job for job in fleet[1].values() if job.state is JobState.RUNNING]
    assert calm[0].job == "restarts"
    assert "13 jobs, 9 need somebody" in shown.text([*fleet[1].values()])


def test_a_refresh_asks_each_job_once(
    fleet: tuple[Any, dict[str, FleetJob]], running: minicluster.Running
) -> None:
    """And the cluster a few times, however many jobs there are."""
    _, found = fleet
    client = client_of(running.http, "none", patient=False)  # as the command does
    again = reading.Fleet(client)
    ledgers = [job.ledger for job in found.values()]
    again.read(ledgers, discovery.operations(client), reading.now())
    since = len(running.client.journal())
    again.read(ledgers, discovery.operations(client), reading.now())
    asked = [entry.method for entry in running.client.journal()[since:]]
    assert asked.count("select_rows") <= len(ledgers)
    assert asked.count("execute_batch") <= 5
    assert asked.count("list_operations") == 1
    writes = {"set", "insert_rows", "create", "remove", "start_transaction", "mount_table"}
    assert not writes & {*asked}


def test_the_command_prints_a_table_and_json(
    fleet: tuple[Any, dict[str, FleetJob]], running: minicluster.Running,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("YT_TOKEN", MARK)
    words = ["fleet", "--proxy", running.http, "--under", FOLDER]
    assert light.main(words) == 0
    table = capsys.readouterr()
    assert "failed (required_null)" in table.out
    assert light.main([*words, "--json"]) == 0
    written = capsys.readouterr()
    jobs = json.loads(written.out)["jobs"]
    assert len(jobs) == len(WANTED)
    assert MARK not in table.out + table.err + written.out + written.err


def test_without_folders_it_finds_what_runs(
    fleet: tuple[Any, dict[str, FleetJob]], running: minicluster.Running,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert light.main(["fleet", "--proxy", running.http, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["jobs"]
    assert found["job"] == "submitted"


@pytest.mark.thorough
def test_a_terminal_is_refreshed_and_outlives_an_outage(
    fleet: tuple[Any, dict[str, FleetJob]], running: minicluster.Running
) -> None:
    """In a pseudo-terminal of 80 columns and 16 lines, until Ctrl-C."""
    words = ["fleet", "--proxy", running.http, "--under", FOLDER, "--watch", "1"]
    with _terminal(words, lines=16, columns=80) as (process, read):
        first = read("needs? somebody")
        assert "failed (required_null)" in first
        assert f"... and {len(WANTED) - 9} jobs" in first
        drawn = _drawn(first)
        assert max(map(len, drawn)) == 80
        assert drawn[0].startswith("job ")
        rule = running.client.faults.add(
            method="list_operations", times=None, action="fail", error=UNAVAILABLE_BY_HTTP
        )
        read("no answer: ")
        running.client.faults.remove(rule)
        read("Ctrl-C ends this view")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_a_pipe_gets_one_table_after_the_other() -> None:
    looks: Iterator[list[FleetJob] | BaseException] = iter(
        [[], OSError("down"), [FleetJob("//home/x", JobState.FAILED)], KeyboardInterrupt()]
    )

    def read() -> list[FleetJob]:
        found = next(looks)
        if isinstance(found, BaseException):
            raise found
        return found

    out = io.StringIO()
    fleet_watch.watch(read, 0.0, out)
    first, second, third = out.getvalue().split("\n\njob ")
    assert "0 jobs, 0 need somebody" in first
    assert "no answer: down" in second
    assert "1 job, 1 needs somebody" in third
    assert "\033" not in out.getvalue()


@contextmanager
def _terminal(
    words: list[str], *, lines: int, columns: int
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[str], str]]]:
    """Run the light command in a terminal; ``read`` returns what was written until a pattern."""
    mine, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, columns))
    given = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "ytstream_tools", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, env={**given, "TERM": "xterm"},
    ) as process:  # fmt: skip
        os.close(theirs)

        def read(pattern: str) -> str:
            said, deadline = "", time.monotonic() + 60
            while not re.search(pattern, said):
                assert time.monotonic() < deadline, said
                if select.select([mine], [], [], 1)[0]:
                    said += os.read(mine, 65_536).decode(errors="replace")
            return said

        try:
            yield process, read
        finally:
            process.kill()
            os.close(mine)


def _drawn(said: str) -> list[str]:
    """Return the lines without what moves the cursor."""
    return re.sub(r"\033\[[?0-9;]*[A-Za-z]", "", said).replace("\r", "").strip().splitlines()
