"""What breaks SPYT's own mode, with the job's cure and without it.

Where a test says that the driver dies, the last requests of the batch and of SPYT's clean-up fail
instead: what is left on the cluster is the same, and the session serves the next test.
"""

from __future__ import annotations

from typing import Any

import pytest
from stream import die_between_the_logs, lose_the_commits_reply, several_triggers, wait_for_failure

from demo.expected import closing


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_death_between_commit_log_and_transaction(stream: Any, cluster: Any, cured: bool) -> None:
    """The state has seen the batch, the consumer has not: its rows come a second time."""
    stream.send(1_000)
    stream.recover()
    die_between_the_logs(stream, cluster, batch=0)
    if cured:
        assert any("runs again" in note for note in stream.recover())
    stream.send(1_000)
    stream.close()
    outcome = stream.outcome()
    if cured:
        assert (outcome.lost, outcome.duplicated) == (0, 0)
    else:
        assert outcome.lost > 0


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_the_commits_reply_is_lost(stream: Any, cluster: Any, cured: bool) -> None:
    """The transaction is in, SPYT does not know it and takes ``commits/N`` back.

    The replay is an empty batch then: it writes the same windows again, and leaves a state that has
    never seen the rows.
    """
    stream.send(3_000)
    stream.recover()
    stream.drain()
    # The batch of these rows writes windows that the first ones have filled.
    stream.send(1_000)
    lose_the_commits_reply(stream, cluster)
    if cured:
        assert any("does not run again" in note for note in stream.recover())
    # The newest rows once more: a state that knows the first ones treats them otherwise.
    stream.publish(stream.sent[-100:])
    stream.close()
    outcome = stream.outcome()
    if cured:
        assert (outcome.lost, outcome.duplicated) == (0, 0)
    else:
        assert outcome.lost + outcome.duplicated > 0


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_no_batch_runs_without_rows(stream: Any, cluster: Any, cured: bool) -> None:
    """Its transaction moves no consumer: nobody can tell that it was lost, and windows with it."""
    stream.send(3_000)
    stream.recover()
    if cured:
        stream.drain()
        with stream.running() as query:
            several_triggers(query, stream)
        assert stream.client.list(f"{stream.settings.checkpoint}/commits") == ["0"]
    else:
        key = "spark.sql.streaming.noDataMicroBatches.enabled"
        stream.spark.conf.set(key, "true")
        try:
            die_between_the_logs(stream, cluster, batch=1)
        finally:
            stream.spark.conf.set(key, "false")
        assert stream.recover() == []
    stream.close()
    outcome = stream.outcome()
    # Without windows there was nothing to write in that batch.
    assert (outcome.lost > 0) == (not cured and bool(closing(stream.sent)))


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_death_in_a_first_batch_without_rows(stream: Any, cluster: Any, cured: bool) -> None:
    """Spark plans batch 0 of empty queues too: no consumer tells whether it happened.

    Entered in the log, as a batch whose reply was lost, it would promise a state that is not there.
    """
    stream.recover()
    state = f"{stream.settings.checkpoint}/state/*"
    cluster.client.faults.add(
        method="MoveNode",
        where={"destination_path": state},
        times=None,
        action="fail",
        error={"code": 1, "message": "the proxy is on strike"},
    )
    with stream.running() as query:
        wait_for_failure(query)
    cluster.client.faults.clear()
    if not cured:
        log = b'v1\n{"nextBatchWatermarkMs":0}'
        path = f"{stream.settings.checkpoint}/commits/0"
        stream.client.write_file(path, log, force_create=True)
    assert stream.recover() == []
    stream.send(1_000)
    if cured:
        stream.close()
        outcome = stream.outcome()
        assert (outcome.lost, outcome.duplicated) == (0, 0)
    else:
        with stream.running() as query:
            assert "delta" in wait_for_failure(query)
