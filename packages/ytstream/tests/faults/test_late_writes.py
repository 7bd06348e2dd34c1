"""Why a key of the user's own needs the transaction: a write that comes after later batches.

Two ways to such a write, each played under `transactional` and, past the rule, under at_least_once.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from minicluster.client import Fault
from minicluster.testing import Running
from tests.support.codes import TABLET_LOCK_CONFLICT
from tests.support.helpers import StreamOf, adopt, another_process
from ytstream.guarantees import GUARANTEES
from ytstream.settings.job_settings import SPYT
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait, wait_for_failure

pytestmark = pytest.mark.spark


@pytest.fixture
def connector() -> str:
    """Name SPYT's, whose tasks wait for the cluster where no cancelling reaches them."""
    return SPYT


_NEXT = {"transactional": "ModifyRows", "at_least_once": "StartTransaction"}
"""How a task goes on after its first write: in SPYT's transaction, or in a new one of its own."""
for_both = pytest.mark.parametrize("guarantee", _NEXT)


def _totals(stream_of: StreamOf, guarantee: str) -> Stream:
    """Return a job of totals, of which a task makes several writes."""
    stream = stream_of("transactional", "aggregate")
    stream.configure(dyn_batch_size=20)
    _declare(stream, guarantee)
    stream.send(1_000)
    stream.recover()
    return stream


def _declare(stream: Stream, guarantee: str) -> None:
    stream.redeclare(guarantee=guarantee)
    stream.context = replace(stream.context, guarantee=GUARANTEES[guarantee])
    adopt(stream.spark, stream.context)


def _hold_a_task(stream: Stream, cluster: Running) -> Fault:
    """Let no reply come to the task that has made the first write, or to the one beside it."""
    faults, name = cluster.client.faults, stream.context.guarantee.name
    where = {"path": stream.settings.output}
    written = faults.add(method="ModifyRows", where=where, when="after", action="delay", seconds=0)
    return faults.add(method=_NEXT[name], armed_by=written, action="hold")


@pytest.mark.journey  # `make test` has the other way to the same late write, below
@for_both
def test_a_paused_driver_continues_between_two_writes(
    stream_of: StreamOf, cluster: Running, guarantee: str
) -> None:
    """Its successor has finished its batch and one more: head and epoch are looked at too late."""
    stream = _totals(stream_of, guarantee)
    held = _hold_a_task(stream, cluster)
    with stream.running() as query:
        cluster.client.faults.wait(held)
        successor = another_process(stream)
        with successor.running() as newer:
            wait(drained(successor.context), newer)
            successor.send(1_000)
            wait(drained(successor.context), newer)
            assert successor.is_exact()
            before = cluster.client.journal()[-1].n
            cluster.client.faults.release(held)
            said = wait_for_failure(query)
    outcome = successor.outcome()
    assert outcome.lost == outcome.duplicated  # each of them an older total in place of the newest
    if guarantee == "transactional":
        assert outcome.lost == 0
        commits = cluster.client.journal("CommitTransaction", since=before)
        assert TABLET_LOCK_CONFLICT in [commit.error["code"] for commit in commits if commit.error]
    else:
        assert outcome.lost > 0
        assert "another instance of this job has started" in said


@for_both
def test_a_task_of_a_batch_that_has_failed_continues(
    stream_of: StreamOf, cluster: Running, guarantee: str
) -> None:
    """One driver: it ends a query that hangs, or in which another task failed, and starts again.

    Spark cancels the task, which waits for the cluster where no cancelling reaches it.
    """
    stream = _totals(stream_of, guarantee)
    held = _hold_a_task(stream, cluster)
    with stream.running() as query:
        cluster.client.faults.wait(held)
        query.stop()
        with stream.running() as newer:
            wait(drained(stream.context), newer)
            stream.send(1_000)
            wait(drained(stream.context), newer)
            assert stream.is_exact()
            (late,) = cluster.client.faults.release(held)
            if guarantee == "transactional":
                assert late.error is not None  # SPYT has aborted the transaction
            else:
                wait(lambda: not stream.is_exact(), newer)
    assert stream.is_exact() == (guarantee == "transactional")
