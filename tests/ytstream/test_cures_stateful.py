"""Faults that break SPYT's transactional mode with state, with the job's cure and without it.

Each test of a pair plays the same break. "bare" leaves the cure out and shows what it is for.
"""

from __future__ import annotations

import pytest

from minicluster.testing import Running
from tests.ytstream.examples import STATEFUL
from tests.ytstream.helpers import (
    ON_STRIKE,
    StreamOf,
    adopt,
    die_between_the_logs,
    fail_in_the_middle_of_a_batch,
    lose_the_commits_reply,
    several_triggers,
)
from ytstream.testing.stream import wait_for_failure

pytestmark = pytest.mark.spark

with_and_without = pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
for_each = pytest.mark.parametrize("processing", STATEFUL)


@with_and_without
@for_each
def test_death_between_commit_log_and_transaction(
    stream_of: StreamOf, cluster: Running, processing: str, cured: bool
) -> None:
    """The state has seen the batch, the consumer has not: its rows come a second time."""
    stream = stream_of("transactional", processing)
    stream.send(500)
    stream.recover()
    die_between_the_logs(stream, cluster, batch=0)
    if cured:
        assert any("the batch will run again" in note for note in stream.recover())
    stream.send(500)
    stream.close()
    assert cured == stream.is_exact()
    assert (stream.outcome().lost > 0) == (not cured)


@with_and_without
@for_each
def test_the_commits_reply_is_lost(
    stream_of: StreamOf, cluster: Running, processing: str, cured: bool
) -> None:
    """The transaction is in, SPYT does not know it and removes ``commits/N``.

    The replay is an empty batch then: it writes the same windows again, and leaves a state that has
    never seen the rows.
    """
    stream = stream_of("transactional", processing)
    stream.send(3_000)
    stream.recover()
    stream.drain()
    # The batch of these rows writes windows that the first ones have filled.
    stream.send(1_000)
    lose_the_commits_reply(stream, cluster)
    if cured:
        assert any("it will not run again" in note for note in stream.recover())
    # The newest rows once more: a state that knows the first ones treats them otherwise.
    stream.publish(stream.sent[-100:])
    stream.close()
    assert stream.is_exact() == cured


@with_and_without
@for_each
def test_no_batch_runs_without_rows(
    stream_of: StreamOf, cluster: Running, processing: str, cured: bool
) -> None:
    """Its transaction would move no consumer: were it lost, nothing would show it."""
    stream = stream_of("transactional", processing)
    stream.send(3_000)
    stream.recover()
    if cured:
        stream.drain()
        with stream.running() as query:
            several_triggers(query, stream, cluster)
        assert stream.client.list(f"{stream.settings.checkpoint}/commits") == ["0"]
    else:
        key = "spark.sql.streaming.noDataMicroBatches.enabled"
        stream.spark.conf.set(key, "true")
        die_between_the_logs(stream, cluster, batch=1)
        stream.spark.conf.set(key, "false")
        assert stream.recover() == []
    stream.close()
    # Only windows had something to write in that batch.
    assert (stream.outcome().lost > 0) == (not cured and processing == "window")


@with_and_without
@for_each
def test_death_in_a_first_batch_without_rows(
    stream_of: StreamOf, cluster: Running, processing: str, cured: bool
) -> None:
    """Spark plans batch 0 of empty queues too, and no consumer shows whether it committed.

    Added to the log, like a batch whose reply was lost, it would promise a missing state.
    """
    stream = stream_of("transactional", processing)
    stream.recover()
    cluster.client.faults.add(
        method="MoveNode",
        where={"destination_path": f"{stream.settings.checkpoint}/state/*"},
        times=None,
        action="fail",
        error=ON_STRIKE,
    )
    with stream.running() as query:
        wait_for_failure(query)
    cluster.client.faults.clear()
    if not cured:
        log = b'v1\n{"nextBatchWatermarkMs":0}'
        path = f"{stream.settings.checkpoint}/commits/0"
        stream.client.write_file(path, log, force_create=True)
    assert stream.recover() == []
    stream.send(500)
    if cured:
        stream.close()
        assert stream.is_exact()
    else:
        with stream.running() as query:
            assert "delta" in wait_for_failure(query)


@for_each
def test_an_at_least_once_batch_that_runs_again_counts_nothing_twice(
    stream_of: StreamOf, cluster: Running, processing: str
) -> None:
    """A write fails in a later batch; other writes of that batch are in the output already.

    The state is exact all the same, and only whole results repeat.
    """
    stream = stream_of("at_least_once", processing)
    stream.configure(dyn_batch_size=50)
    adopt(stream.spark, stream.connection)
    stream.send(3_000)
    stream.recover()
    stream.drain()
    stream.send(3_000)
    fail_in_the_middle_of_a_batch(stream, cluster, skip=2)
    stream.recover()
    stream.close()
    assert stream.outcome().lost == 0
    assert stream.found().keys() == stream.wanted().keys()
