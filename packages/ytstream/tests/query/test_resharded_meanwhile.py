"""A queue gets fewer tablets while one request of a batch is under way, whichever it is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from minicluster.client import Fault
from minicluster.testing import Running
from tests.support.examples import settings_of
from tests.support.helpers import (
    MIGRATED,
    StreamOf,
    another_process,
    fails_with,
    head_of,
    refusal,
    reshard,
    sampled,
)
from tests.support.job_thread import end_of
from tests.support.waiting import eventually
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import positions
from ytstream.provisioning import job_objects
from ytstream.query.stall_watchdog import LOOK_SECONDS, Watchdog
from ytstream.recovery import migration, repositioning
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import PATIENCE_SECONDS, Stream, wait

pytestmark = pytest.mark.spark

GUARANTEES = ("transactional", "idempotent", "at_least_once")

_ALWAYS = ("Discover", "discover_proxies", "PingTransaction")
"""Requests that come at any time, of no batch."""
_STABLE = ("path", "queue", "partition")
"""What tells the requests of a batch apart. Ids are others in each run."""
_NO_SUCH_TABLET = 1701
_ALL_READ = "the job has read all of them"


@dataclass(frozen=True)
class Request:
    """One request of a batch, as a fault rule chooses it."""

    method: str
    where: dict[str, Any] = field(default_factory=dict)
    skip: int = 0
    """How many like it come before."""
    behind: Request | None = None
    """The request after whose like this one counts; None: after the rows were sent."""


_LEDGER = Request("ModifyRows", {"path": "*/ledger"})
NAMED = {
    "before the plan": Request("GetNode", {"path": "*/@queue_partitions"}),
    "between two pulls": Request("PullConsumer", {"partition": 3}),
    "between the check and the commit": _LEDGER,
    "at the commit": Request("CommitTransaction", behind=_LEDGER),
}
"""Names of requests: the name says where the reshard falls."""


def _hold(stream: Stream, cluster: Running, request: Request) -> Fault:
    """Hold the request of the next batch; the rows are sent afterwards."""
    faults, (queue,) = cluster.client.faults, stream.settings.queues
    begun = faults.add(method="insert_rows", where={"path": queue}, action="delay", seconds=0)
    for one in (request.behind, request):
        if one is not None:
            action: dict[str, Any] = {"action": "delay", "seconds": 0}
            if one is request:
                action = {"action": "hold"}
            begun = faults.add(
                method=one.method, where=one.where, skip=one.skip, armed_by=begun, **action
            )
    return begun


def _reshard_meanwhile(stream: Stream, cluster: Running, request: Request) -> None:
    """Send 80 rows, and reshard the queue while the request of their batch is under way."""
    held = _hold(stream, cluster, request)
    stream.send(80)
    cluster.client.faults.wait(held)
    reshard(stream.client, stream.settings.queues[0], 2)
    cluster.client.faults.clear()


def _await_end(stream: Stream, cluster: Running, query: StreamingQuery, since: int) -> None:
    """Wait until the query ends, or pulls from a tablet that is gone, which it tries for minutes.

    Then let the watch look, which ends a job.
    """
    eventually(
        lambda: not query.isActive or _is_gone(cluster, since),
        PATIENCE_SECONDS,
        said=lambda: str(query.lastProgress),
    )
    if query.isActive:
        watch = Watchdog(stream.context, stream.epoch, query, lambda: None)
        with fails_with(ErrorCode.QUEUE_RESHARDED):
            watch.look(time.monotonic() + 2 * LOOK_SECONDS)
        query.stop()


def _is_gone(cluster: Running, since: int) -> bool:
    """Return whether a pull was refused since then."""
    found = cluster.client.journal("PullConsumer", since=since)
    return any(entry.error and entry.error["code"] == _NO_SUCH_TABLET for entry in found)


def _is_recorded(stream: Stream) -> bool:
    """Verify outputs, ledger, consumer and the next start; return whether the batch counts."""
    (queue,) = stream.settings.queues
    found = positions.read(stream.client, stream.settings)
    ends = head_of(stream).ends[queue]
    assert found.queues[0].consumed == ends
    is_recorded = ends == dict.fromkeys(range(4), 40)
    assert is_recorded or ends == dict.fromkeys(range(4), 20)
    output, (job, sample) = stream.found(), (stream.context.job, stream.sample)
    wanted = sample.wanted(job, stream.sent[: 160 if is_recorded else 80])
    assert not wanted - output
    if job.guarantee == "transactional":
        assert output == wanted
    assert not output - sample.wanted(job, stream.sent)  # of a batch that was not recorded
    said = refusal(stream.recover)
    assert f"queue {queue} was resharded from 4 to 2 tablets" in said
    assert (_ALL_READ if is_recorded else "80 rows of it were not read before") in said
    return is_recorded


def _continue(stream: Stream, *, is_recorded: bool) -> None:
    """Do what the refusal asks for, and run the job again."""
    if is_recorded:
        assert migration.migrate(stream.context, stream.tablets)[-1] == MIGRATED
        stream.send(80)
        another_process(stream).drain()
        assert stream.is_exact()
        return
    assert "80 rows" in refusal(lambda: migration.migrate(stream.context, stream.tablets))
    repositioning.rewind(stream.context, stream.tablets, "latest", ())
    another_process(stream).recover()


def _play(stream: Stream, cluster: Running, request: Request) -> bool:
    """Reshard the queue while the request of a batch is under way; return whether it counts."""
    with stream.running() as query:
        stream.send(80)
        wait(drained(stream.context), query)
        since = cluster.client.journal()[-1].n
        _reshard_meanwhile(stream, cluster, request)
        _await_end(stream, cluster, query, since)
    is_recorded = _is_recorded(stream)
    _continue(stream, is_recorded=is_recorded)
    return is_recorded


@pytest.mark.parametrize(
    ("guarantee", "name"),
    sampled(
        [(guarantee, name) for guarantee in GUARANTEES for name in NAMED],
        [
            ("transactional", "between two pulls"),
            ("transactional", "at the commit"),
            ("idempotent", "between the check and the commit"),
            ("at_least_once", "before the plan"),
        ],
    ),
)
def test_a_reshard_in_the_middle_of_a_batch(
    stream_of: StreamOf, cluster: Running, guarantee: str, name: str
) -> None:
    """A batch that is recorded has read all its rows before: under the numbers that it records."""
    is_recorded = _play(stream_of(guarantee), cluster, NAMED[name])
    assert is_recorded == name.endswith("commit")


def _requests(stream: Stream, cluster: Running) -> Iterator[Request]:
    """Yield the requests of one batch, each once, from when its rows are there to its commit."""
    faults, (queue,) = cluster.client.faults, stream.settings.queues
    with stream.running() as query:
        stream.send(80)
        wait(drained(stream.context), query)
        since = cluster.client.journal()[-1].n
        written = faults.add(method="ModifyRows", where=_LEDGER.where, action="delay", seconds=0)
        end = faults.add(
            method="CommitTransaction", armed_by=written, when="after", action="delay", seconds=0
        )
        stream.send(80)
        faults.wait(end)
        entries = cluster.client.journal(since=since)
        faults.clear()
    before: Counter[str] = Counter()
    is_begun = False
    for entry in entries:
        where = {key: entry.args[key] for key in _STABLE if key in entry.args}
        key = f"{entry.method} {where}"
        if is_begun and entry.method not in _ALWAYS:
            yield Request(entry.method, where, before[key])
            before[key] += 1
        is_begun |= entry.method == "insert_rows" and entry.args["path"] == queue


@pytest.mark.journey
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_reshard_at_each_request_of_a_batch(
    stream_of: StreamOf, cluster: Running, guarantee: str
) -> None:
    first = stream_of(guarantee)
    root = first.settings.checkpoint.rpartition("/")[0]
    requests = list(_requests(first, cluster))
    assert {"PullConsumer", "get", "ModifyRows", "AdvanceConsumer", "CommitTransaction"} <= {
        request.method for request in requests
    }
    recorded = []
    for number, request in enumerate(requests):
        stream = _in_folder(first, f"{root}/at-{number}")
        where = {key: _moved(value, root, f"at-{number}") for key, value in request.where.items()}
        recorded.append(_play(stream, cluster, replace(request, where=where)))
    assert len({*recorded}) == 2


def _in_folder(stream: Stream, folder: str) -> Stream:
    """Provision the same job in another folder."""
    settings = settings_of(stream.context.job, folder, proxy=stream.settings.proxy)
    context = replace(stream.context, settings=settings)
    job_objects.provision(context)
    return Stream(context, stream.sample, stream.spark)


def _moved(value: Any, root: str, name: str) -> Any:
    """Return the path of the same object in the folder ``name``; another value as it is."""
    return value.replace(root, f"{root}/{name}", 1) if isinstance(value, str) else value


def test_a_job_whose_pulls_find_no_tablet_ends(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPYT tries such a pull again for minutes; the watch compares the tablets sooner."""
    monkeypatch.setattr("ytstream.query.stall_watchdog.LOOK_SECONDS", 0.5)
    stream = stream_of("transactional")
    stream.send(80)

    def deed() -> None:
        _reshard_meanwhile(stream, cluster, Request("PullConsumer"))

    said = str(end_of(stream, drained(stream.context), deed))
    assert "was resharded from 4 to 2 tablets" in said
    assert "80 rows of it were not read" in said
