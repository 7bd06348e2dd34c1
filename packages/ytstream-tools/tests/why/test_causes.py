"""`why` names what was done to a job on a minicluster, and nothing else; no JVM."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from yt.wrapper import VanillaSpecBuilder

from minicluster import testing as minicluster
from tests.support.examples import example, settings_of
from tests.support.read_requests import READS
from tests.support.server_errors import THROTTLED, TOKEN_BY_HTTP, denied
from tests.support.simulated_driver import BID
from tests.support.status_steps import NOW, head_of_batch, invoke, send, write_rows
from tests.support.waiting import eventually
from ytstream import Column
from ytstream.cluster import built_reference, operation
from ytstream.cluster.client import connect
from ytstream.errors.error_codes import ErrorCode
from ytstream.guarantees import guarantee_of
from ytstream.instance.lock import InstanceLock
from ytstream.instance.stop_request import tell_end
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import BatchRow, Head, Totals, batch_row, head_row
from ytstream.ownership import job_marker
from ytstream.provisioning import job_objects, permissions
from ytstream.recovery.emptied_totals import INTENT
from ytstream.recovery.epoch import Epoch
from ytstream.settings.submit_section import SubmitSection
from ytstream_tools.status.sum_status import SumStatus
from ytstream_tools.why import causes, facts, report, slowness

MARK = "MARKED-VALUE"
"""In every row and in the token: neither may come out anywhere."""


@pytest.fixture(scope="module")
def running() -> Iterator[minicluster.Running]:
    """Start a minicluster that runs operations."""
    with minicluster.start(operations=True) as cluster:
        yield cluster


@dataclass
class Job:
    """A job that runs as far as the cluster can tell: its lock is held, a batch has just ended."""

    cluster: minicluster.Running
    context: JobContext
    lock: InstanceLock
    head: Head
    change: Callable[[facts.Facts], facts.Facts] = lambda found: found
    """How the facts differ from what the cluster says, where a minicluster cannot say it."""
    undo: Callable[[], object] = lambda: None
    """Takes back what would hinder other jobs."""

    @property
    def client(self) -> Any:
        return self.context.client

    @property
    def queue(self) -> str:
        return self.context.settings.queues[0]

    def write(self, **changed: Any) -> None:
        """Write the head, changed."""
        self.head = replace(self.head, **changed)
        write_rows(self.context, head_row(self.head))

    def configure(self, **settings: Any) -> None:
        self.context = replace(self.context, settings=replace(self.context.settings, **settings))

    def end(self, code: ErrorCode | str = "", said: str = "") -> None:
        """Let the process end with its last word."""
        tell_end(self.context, Epoch(self.head.epoch, self.head.owner), said, code)
        self.lock.release()

    def operate(self, command: str = "sleep 600") -> str:
        """Start an operation with the job's note, and wait for its driver."""
        spec = (
            VanillaSpecBuilder().begin_task("driver").command(command).job_count(1).end_task()
            .alias(self.context.settings.alias)
        )  # fmt: skip
        note = {"ledger": self.context.settings.ledger, "commit": "abc"}
        spec = spec.spec({"annotations": {operation.NOTE: note}})
        id_ = str(self.client.run_operation(spec, sync=False).id)
        eventually(lambda: [run for run in operation.runs(self.client, id_) if run.started])
        return id_

    def facts(self) -> facts.Facts:
        return self.change(facts.collect(self.context))

    def named(self) -> list[str]:
        return [cause.name for cause, _ in causes.causes_of(self.facts())]


@pytest.fixture
def job(running: minicluster.Running, root: str) -> Iterator[Job]:
    """A job that has read the 40 rows of its queue."""
    declared = example("transactional", "map", rejects=True).job
    settings = settings_of(declared, root, proxy=running.http)
    context = JobContext(connect(settings), settings, declared, guarantee_of(declared))
    job_objects.provision(context)
    send(context, 40)
    lock = InstanceLock(context.client, settings.consumer)
    lock.acquire(print)
    holder = next(owner for _, owner, _ in lock.holders())
    queue = settings.queues[0]
    ends = {queue: dict.fromkeys(range(4), 10)}
    for partition in range(4):
        context.client.advance_queue_consumer(settings.consumer, queue, partition, None, 10)
    marker = job_marker.marker_of(context)
    owner = f"{holder.rpartition(',')[0]}, 0123abcd"
    head = replace(head_of_batch(context, 1), owner=owner, ends=ends, marker=marker)
    made = Job(running, context, lock, head)
    made.write()
    _batch(made, timedelta())
    yield made
    made.undo()
    running.client.faults.clear()
    lock.release()
    for found in made.client.list_operations(limit=100)["operations"]:
        if found["state"] not in operation.FINAL:
            made.client.abort_operation(found["id"])


def _batch(job: Job, later: timedelta) -> None:
    """Write the row of a batch that has ended."""
    ended = NOW + later
    done = BatchRow({job.queue: {0: (0, 10)}}, {"output": 10}, ended - timedelta(seconds=2), ended)
    write_rows(job.context, batch_row(Head(epoch=3, batch=0, number=1), done))


# -- what is done to the job


def _token_expired(job: Job) -> None:
    error = {**TOKEN_BY_HTTP, "attributes": {"token_hash": MARK}}
    job.cluster.client.faults.add(method="get", times=None, action="fail", error=error)


def _cluster_away(job: Job) -> None:
    job.configure(proxy="127.0.0.1:9")


def _tablet_unmounted(job: Job) -> None:
    job.client.unmount_table(job.context.settings.output, sync=True)


def _queue_unmounted(job: Job) -> None:
    job.client.unmount_table(job.queue, sync=True)


def _reference_unmounted(job: Job) -> None:
    """It was built by `make reference`, and is mounted frozen again."""
    path = f"{job.context.settings.ledger}-titles"
    schema = [{"name": "k", "type": "int64", "sort_order": "ascending"},
              {"name": "v", "type": "int64"}]  # fmt: skip
    job.client.create("table", path, attributes={"dynamic": True, "schema": schema})
    built_reference.finish(job.client, path, "//home/source", ("k",))
    job.configure(references={"titles": path})


def _reference_of(job: Job, type_: str = "int64", **columns: str) -> str:
    """Give the job a reference that is mounted; return its path."""
    path = f"{job.context.settings.ledger}-titles"
    schema = [{"name": "k", "type": type_, "sort_order": "ascending"}]
    schema += [{"name": name, "type": kind} for name, kind in columns.items()]
    job.client.create("table", path, attributes={"dynamic": True, "schema": schema})
    job.client.mount_table(path, sync=True)
    job.configure(references={"titles": path})
    declared = {"titles": [Column("k", "int64", key=True), Column("v", "int64")]}
    job.context = replace(job.context, job=replace(job.context.job, references=declared))
    return path


def _reference_read_whole(job: Job) -> None:
    """Nobody mounts it, so nothing is wrong."""
    path = job.context.settings.ledger + "-register"
    job.client.create("table", path, attributes={"schema": [{"name": "k", "type": "int64"}]})
    job.configure(reference=path, references={"register": path})


def _reference_altered(job: Job) -> None:
    _reference_of(job, v="string")


def _reference_without_its_column(job: Job) -> None:
    _reference_of(job, w="int64")


def _reference_with_another_key(job: Job) -> None:
    _reference_of(job, "string", v="int64")


def _reference_static(job: Job) -> None:
    """It has more rows than are read whole: nobody can mount it."""
    path = _reference_of(job, v="int64")
    job.client.remove(path)
    schema = [{"name": "k", "type": "int64"}, {"name": "v", "type": "int64"}]
    job.client.create("table", path, attributes={"schema": schema})
    job.client.write_table(path, [{"k": 1, "v": 1}, {"k": 2, "v": 2}])
    job.context = replace(job.context, job=replace(job.context.job, reference_rows=1))


def _reference_overloaded(job: Job) -> None:
    where = {"path": _reference_of(job, v="int64")}
    job.cluster.client.faults.add(
        method="lookup_rows", where=where, times=None, action="fail", error=THROTTLED
    )


def _reference_hangs(job: Job) -> None:
    where = {"path": _reference_of(job, v="int64")}
    faults = job.cluster.client.faults
    faults.add(method="lookup_rows", where=where, times=None, action="delay")


def _reference_gone(job: Job) -> None:
    job.client.remove(_reference_of(job, v="int64"))


def _reference_switched(job: Job) -> None:
    """To another table that fits: nothing is wrong."""
    path = _reference_of(job, v="int64")
    job.client.link(path, f"{path}-link")
    job.configure(references={"titles": f"{path}-link"})


def _reference_denied(job: Job) -> None:
    said = "failed: not permitted on the cluster: cannot look up 3 keys of the reference titles"
    job.end(ErrorCode.PERMISSION, said)


def _output_gone(job: Job) -> None:
    job.client.remove(job.context.settings.output)


def _quota_used_up(job: Job) -> None:
    """The minicluster refuses nothing for it, but counts."""
    account = str(job.client.get(f"{job.context.settings.ledger}/@account"))
    limits = job.client.get(f"//sys/accounts/{account}/@resource_limits")
    job.undo = lambda: job.client.set(f"//sys/accounts/{account}/@resource_limits", limits)
    job.client.set(f"//sys/accounts/{account}/@resource_limits", {**limits, "node_count": 1})


def _proxy_role_gone(job: Job) -> None:
    job.configure(proxy_role="streaming")


def _consumer_forward(job: Job) -> None:
    job.client.advance_queue_consumer(job.context.settings.consumer, job.queue, 2, 10, 11)
    send(job.context, 4)


def _consumer_back(job: Job) -> None:
    job.client.advance_queue_consumer(job.context.settings.consumer, job.queue, 2, 10, 3)


def _foreign_ledger(job: Job) -> None:
    job.write(marker={**job.head.marker, "job": "payments"})


def _ledger_damaged(job: Job) -> None:
    """Somebody writes a head by hand."""
    write_rows(job.context, {**head_row(job.head), "queues": [{"path": MARK}]})


def _queue_trimmed(job: Job) -> None:
    send(job.context, 20)
    job.client.trim_rows(job.queue, 1, 14)


def _executor_memory(job: Job) -> None:
    """No node of the minicluster has a limit of memory: the error is the one of a real node."""
    job.operate()
    killed = facts.Attempt(
        operation.EXECUTOR, "failed", "2026-01-01T00:00:00Z", NOW.isoformat(), (1205, 1200)
    )
    job.change = lambda found: replace(found, attempts=[killed, *found.attempts])


def _driver_preempted(job: Job) -> None:
    id_ = job.operate()
    (found,) = [one for one in job.cluster.client.operations.list() if one.id == id_]
    job.cluster.client.operations.abort_job(found.jobs[0].id, "preemption")


def _dead_lock(job: Job) -> None:
    """A process takes the lock and is killed. This process, whose lock it was, has ended."""
    job.lock.release()
    settings = job.context.settings
    code = f"""
import os, signal
from ytstream.cluster.client import client_of
from ytstream.instance.lock import InstanceLock
lock = InstanceLock(client_of({settings.proxy!r}, "x", patient=True), {settings.consumer!r})
lock.acquire(print)
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert list(job.lock.holders())


def _no_rows(job: Job) -> None:
    """Nothing: the job has read everything."""


def _clock_ahead(job: Job) -> None:
    _batch(job, timedelta(hours=2))


def _cluster_hangs(job: Job) -> None:
    """It takes requests and answers none: `why` gives up after the first one."""
    job.cluster.client.faults.add(action="delay", times=None)


def _stopped(job: Job) -> None:
    job.end(said="stopped")


def _failed(job: Job) -> None:
    job.end(ErrorCode.REQUIRED_NULL, f"failed: a null in the row {MARK}")


def _state_damaged(job: Job) -> None:
    job.end(ErrorCode.STATE_DAMAGED, "failed: the state in the checkpoint is damaged")


def _killed(job: Job) -> None:
    job.lock.release()


def _behind(job: Job) -> None:
    send(job.context, 400)
    now = datetime.now(UTC)  # the last batch must not have ended minutes ago
    for number in range(2, 5):  # each takes all of the time
        begun = now - timedelta(seconds=2 * (6 - number))
        done = BatchRow({job.queue: {0: (0, 10)}}, {}, begun, begun + timedelta(seconds=2))
        write_rows(job.context, batch_row(Head(epoch=3, batch=number, number=number), done))
    job.write(number=4)
    job.configure(submit=SubmitSection(executors=4))

    def later(found: facts.Facts) -> facts.Facts:
        assert found.status is not None
        waiting = [replace(one, seconds=3000.0) for one in found.status.partitions]
        return replace(found, status=replace(found.status, partitions=waiting))

    job.change = later


def _rows_lost(job: Job) -> None:
    job.write(totals=Totals(100, {"output": 90, "rejected": 9}))


def _total_near_its_end(job: Job) -> None:
    near = SumStatus("output", "total", "int64", 0, 2**63 - 2, 1.0)

    def changed(found: facts.Facts) -> facts.Facts:
        assert found.status is not None
        return replace(found, status=replace(found.status, sums=[near]))

    job.change = changed


def _rewind_cut_off(job: Job) -> None:
    def changed(found: facts.Facts) -> facts.Facts:
        assert found.status is not None
        assert found.head is not None
        head = replace(found.head, marker={INTENT: []})
        return replace(found, status=replace(found.status, head=head))

    job.lock.release()
    job.change = changed


def _rows_rejected(job: Job) -> None:
    ended = NOW
    done = BatchRow(
        {job.queue: {0: (0, 10)}}, {"output": 9, "rejected": 1}, ended, ended,
        rejected={"too old": 1},
    )  # fmt: skip
    write_rows(job.context, batch_row(Head(epoch=3, batch=0, number=1), done))


def _rows_late(job: Job) -> None:
    done = BatchRow({job.queue: {0: (0, 10)}}, {"output": 9}, NOW, NOW, late=1)
    write_rows(job.context, batch_row(Head(epoch=3, batch=0, number=1), done))


def _restarted(job: Job) -> None:
    job.write(epoch=9)


def _runs(job: Job) -> None:
    send(job.context, 4)


PROVOKED: Mapping[Callable[[Job], None], str] = {
    _token_expired: "token",
    _tablet_unmounted: "unmounted",
    _quota_used_up: "quota",
    _proxy_role_gone: "proxies",
    _consumer_forward: "consumer",
    _foreign_ledger: "foreign",
    _ledger_damaged: "damaged",
    _queue_trimmed: "trimmed",
    _executor_memory: "memory",
    _driver_preempted: "preempted",
    _dead_lock: "lock",
    _no_rows: "idle",
    _clock_ahead: "clock",
    _cluster_away: "outage",
    _cluster_hangs: "outage",
    _queue_unmounted: "unmounted",
    _reference_unmounted: "unmounted",
    _reference_read_whole: "idle",
    _reference_altered: "reference",
    _reference_without_its_column: "reference",
    _reference_with_another_key: "reference",
    _reference_static: "reference",
    _reference_overloaded: "overloaded",
    _reference_hangs: "overloaded",
    _reference_gone: "missing",
    _reference_switched: "idle",
    _reference_denied: "permission",
    _output_gone: "missing",
    _consumer_back: "consumer",
    _stopped: "stopped",
    _failed: "failed",
    _state_damaged: "state",
    _killed: "killed",
    _behind: "behind",
    _rows_lost: "unequal",
    _total_near_its_end: "total",
    _rewind_cut_off: "cut_off",
    _rows_rejected: "rejected",
    _rows_late: "late",
    _restarted: "restarts",
    _runs: "works",
}
"""What is done -> what is named first."""
SAMPLE = (
    _token_expired, _queue_unmounted, _queue_trimmed, _executor_memory, _failed, _behind,
    _reference_altered, _reference_overloaded,
)  # fmt: skip
"""What `make test` provokes: by the cluster, an object, the queue, the operation, the job,
a reference."""


@pytest.mark.parametrize(
    "provoke",
    [
        *SAMPLE,
        *(pytest.param(one, marks=pytest.mark.thorough) for one in PROVOKED if one not in SAMPLE),
    ],
    ids=lambda one: one.__name__.lstrip("_"),
)
def test_what_was_done_is_named_first(job: Job, provoke: Callable[[Job], None]) -> None:
    provoke(job)
    found = job.facts()
    known = list(causes.causes_of(found))
    assert known
    cause, finding = known[0]
    assert cause.name == PROVOKED[provoke]
    assert finding.do or cause.is_healthy
    healthy = {one.name for one in causes.CAUSES if one.is_healthy}
    # What a fault brings with it may be told as well, another fault may not.
    allowed = {PROVOKED[provoke], "killed", "never", "rights"} if not cause.is_healthy else set()
    assert {one.name for one, _ in known} <= allowed | healthy
    shown, ticket = report.text(found, known), json.dumps(report.ticket(found))
    assert MARK not in ticket
    # A person on call needs the message of the failure: it names the row or its place.
    assert (MARK in shown) == (provoke is _failed)


def test_a_cause_that_is_not_known_leaves_a_ticket_without_rows_and_secrets(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows wait, nothing is wrong with the cluster, and no batch ends."""
    monkeypatch.setenv("YT_TOKEN", MARK)
    for module in (causes, slowness):
        monkeypatch.setattr(module, "STALLED_SECONDS", -1)  # rows wait from their first second
    line = f"{NOW:%Y-%m-%d %H:%M:%S} ERROR [required_null] {MARK} in column url"
    job.operate(f"echo '{line}' >&2; sleep 600")
    _batch(job, -timedelta(hours=1))
    job.client.insert_rows(job.queue, [{**_row(), "url": MARK}])
    eventually(lambda: facts.collect(job.context).log)
    assert invoke(job.context, tmp_path, "--ticket", str(tmp_path), command="why") == 1
    said = capsys.readouterr()
    (ticket,) = tmp_path.glob("ticket-*.json")
    assert str(ticket) in said.out
    written = ticket.read_text(encoding="utf-8")
    assert json.loads(written)["log"][-1]["word"] == "required_null"
    assert MARK not in said.out + said.err + written


def _row() -> Mapping[str, Any]:
    return {**BID, "$tablet_index": 0}


def test_the_exit_code_of_an_attempt_is_read(job: Job) -> None:
    """52 is a full heap of an executor. Of a driver it says nothing: SPYT makes 1 of it."""
    job.operate("exit 52")
    found = eventually(lambda: [one for one in facts.collect(job.context).attempts if one.ended])
    assert (found[0].of, found[0].exit_code) == (operation.DRIVER, 52)
    executor = replace(found[0], of=operation.EXECUTOR)
    known = causes.causes_of(replace(job.facts(), attempts=[executor]))
    assert next(finding.said for cause, finding in known if cause.name == "memory") == (
        "1 executor job ended because the Java heap was full"
    )


def test_nothing_is_changed(job: Job, tmp_path: Path) -> None:
    """No request of `why` writes."""
    job.operate()
    since = len(job.cluster.client.journal())
    assert invoke(job.context, tmp_path, command="why") == 0
    asked = {entry.method for entry in job.cluster.client.journal()[since:]}
    assert asked <= READS | {"generate_timestamp", "get_current_user", "get_job_stderr"}


def test_a_right_that_is_missing_is_named(job: Job) -> None:
    error = denied("read", f"//home/{MARK}")
    job.cluster.client.faults.add(method="select_rows", times=None, action="fail", error=error)
    found = job.facts()
    assert next(cause.name for cause, _ in causes.causes_of(found)) == "rights"
    job.cluster.client.faults.clear()
    user = f"guest-{abs(hash(job.queue))}"
    job.client.create("user", attributes={"name": user})
    missing = [*permissions.missing(
        job.client, permissions.of_stop(job.context.settings), user
    )]  # fmt: skip
    assert missing == [f"write on ledger {job.context.settings.ledger}: the wish to stop"]
    shown = report.text(replace(found, missing_to_stop=missing), [])
    assert "this user may not stop the job:\n  write on ledger" in shown


def test_a_reference_is_named_with_its_command(job: Job) -> None:
    _reference_unmounted(job)
    path = job.context.settings.references["titles"]
    finding = {cause.name: one for cause, one in causes.causes_of(job.facts())}["unmounted"]
    assert f"reference 'titles' {path} is unmounted" in finding.said
    assert finding.do == (f"yt mount-table {path} --freeze --sync",)
    job.client.mount_table(path, freeze=True, sync=True)
    assert "unmounted" not in job.named()
    job.client.remove(path)
    assert "missing" in job.named()


@pytest.mark.parametrize(
    ("provoke", "said"),
    [
        (_reference_altered, "column v: the table has string, tables.py says int64"),
        (_reference_without_its_column, "column v: the table lacks it, tables.py has it"),
        (_reference_with_another_key, "column k: the table has string, tables.py says int64"),
        (_reference_overloaded, 'Read request is throttled due to "lookup" throttler overdraft'),
    ],
    ids=lambda one: getattr(one, "__name__", "").lstrip("_"),
)
def test_what_is_wrong_with_a_reference_is_said_with_its_path(
    job: Job, provoke: Callable[[Job], None], said: str
) -> None:
    provoke(job)
    path = job.context.settings.references["titles"]
    finding = next(one for _, one in causes.causes_of(job.facts()))
    assert f"reference 'titles' {path}" in finding.said
    assert said in finding.said
