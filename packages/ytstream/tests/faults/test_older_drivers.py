"""A driver that was cut off or frozen, and its successor; with each fix and without it.

Two processes of one job run in one session: a second ``Stream`` has an epoch of its own.
"""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.client import Entry
from minicluster.testing import Running
from tests.support import without_fix
from tests.support.codes import TABLET_LOCK_CONFLICT
from tests.support.helpers import (
    StreamOf,
    another_process,
    at_a_commit,
    fails_with,
    head_of,
    refusal_code,
    run_until_it_fails,
)
from ytstream.errors.error_codes import ErrorCode
from ytstream.recovery import checkpoint_repair
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import wait, wait_for_failure

pytestmark = pytest.mark.spark

with_and_without = pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "bare"])


def _cut_off(stream_of: StreamOf, cluster: Running, processing: str, queues: int = 1) -> Any:
    """Return a stream whose second batch failed, and the commit that the cluster still holds."""
    stream = stream_of("transactional", processing, queues)
    stream.configure(max_rows_per_partition=50)
    stream.send(400)
    stream.recover()
    late = at_a_commit(stream, cluster, "apply_late", after=1)
    run_until_it_fails(stream)
    return stream, late


@pytest.mark.parametrize(
    ("processing", "queues", "fixed"),
    [("map", 2, True), ("window", 1, True), ("map", 1, False)],
    ids=["map-2", "window", "bare"],
)
def test_a_commit_is_applied_after_recovery(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    queues: int,
    fixed: bool,
) -> None:
    """The connection breaks at the batch's commit; the cluster applies it when recovery is over.

    It wrote the head, which the start wrote after it. A head that is written apart stands for a
    batch whose commit is refused: its rows are lost.
    """
    if not fixed:
        plain = stream_of("transactional", processing, queues)
        without_fix.write_the_head_apart(monkeypatch, plain)
    stream, late = _cut_off(stream_of, cluster, processing, queues)
    stream.recover()
    faults = cluster.client.faults
    # The next batch has read the consumer and has not opened its transaction; before the query
    # verify_sink() opens one.
    opening = faults.add(method="StartTransaction", where={"type": 1}, skip=1, action="hold")
    with stream.running() as query:
        if fixed:
            faults.wait(opening)
        (entry,) = faults.release(late)
        faults.clear()
        wait(drained(stream.context), query)
    assert entry.error is not None
    assert entry.error["code"] == TABLET_LOCK_CONFLICT
    stream.close()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0 if fixed else 200, 0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("processing", "fixed"),
    [("map", True), ("deduplicate", True), ("window", True), ("window", False)],
    ids=["map", "deduplicate", "window", "bare"],
)
def test_a_commit_is_applied_during_recovery(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    fixed: bool,
) -> None:
    """The start has read where everything stands, and has not committed yet.

    With an epoch that is raised by the start's commit alone, the head is moved back behind the
    batch that has happened meanwhile, and the consumer is not.
    """
    stream, late = _cut_off(stream_of, cluster, processing)
    released: list[Entry] = []
    new_folder = checkpoint_repair.new_folder

    def slow(*given: Any, **more: Any) -> int:
        released.extend(cluster.client.faults.release(late))
        return new_folder(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_repair, "new_folder", slow)
        if not fixed:
            without_fix.raise_no_epoch_before_the_start(patched)
        stream.recover()
    (entry,) = released
    if fixed:
        assert entry.error is not None
        assert entry.error["code"] == TABLET_LOCK_CONFLICT
        stream.close()
        assert stream.is_exact()
    else:
        assert entry.error is None
        with fails_with(ErrorCode.CONSUMER_MOVED):
            stream.drain()
        assert refusal_code(stream.recover) == ErrorCode.CONSUMER_MOVED


@pytest.mark.thorough
@with_and_without
def test_a_frozen_driver_comes_back_with_a_batch_that_has_happened(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch, fixed: bool
) -> None:
    """Its plan is old and its transaction new: no lock of the cluster is in its way.

    The batch reads nothing, since the consumer is at its end, and would write its own number into
    the head of a folder in which later batches have happened.
    """
    if not fixed:
        without_fix.verify_no_head(monkeypatch)
    stream = stream_of("transactional")
    stream.send(160)
    stream.recover()
    faults = cluster.client.faults
    opening = faults.add(method="StartTransaction", where={"type": 1}, skip=1, action="hold")
    with stream.running() as query:
        faults.wait(opening)
        successor = another_process(stream)
        successor.configure(max_rows_per_partition=20)
        successor.drain()
        assert head_of(stream).batch == 1
        faults.clear()
        if fixed:
            assert "another instance of this job has started: epoch 2" in wait_for_failure(query)
        else:
            wait(lambda: head_of(stream).batch == 0, query)
    assert head_of(stream).batch == (1 if fixed else 0)
    assert stream.is_exact()
