"""What breaks SPYT's own mode, with the job's cure and without it.

Where a test says that the driver dies, the last requests of the batch and of SPYT's clean-up fail
instead: what is left on the cluster is the same, and the session serves the next test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from stream import die_between_the_logs, lose_the_commits_reply, several_triggers


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_death_between_commit_log_and_transaction(stream: Any, cluster: Any, cured: bool) -> None:
    """With a backlog SPYT takes the batch for done, waits for newer rows and never sees any."""
    per_tablet = stream.settings.max_rows_per_partition
    stream.send(4 * per_tablet * 3)
    stream.recover()
    die_between_the_logs(stream, cluster, batch=1)
    if cured:
        assert any("runs again" in note for note in stream.recover())
        stream.drain()
        outcome = stream.outcome()
        assert (outcome.lost, outcome.duplicated) == (0, 0)
    else:
        before = stream.found().total()
        stream.send(100)
        with stream.running() as query:
            several_triggers(query, stream)
        assert stream.found().total() == before < len(stream.sent)


def test_death_in_the_first_batch_after_a_lost_checkpoint(stream: Any, cluster: Any) -> None:
    """The new checkpoint begins where the consumer is, not where the lost one began."""
    stream.send(1_000)
    stream.recover()
    stream.drain()
    stream.forget()
    stream.recover()
    stream.send(1_000)
    die_between_the_logs(stream, cluster, batch=0)
    assert any("runs again" in note for note in stream.recover())
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_the_commits_reply_is_lost(stream: Any, cluster: Any, cured: bool) -> None:
    """The transaction is in, SPYT does not know it and takes ``commits/N`` back.

    Without state the replay is an empty batch: both ways are exact, and only the log differs.
    """
    stream.send(1_000)
    stream.recover()
    lose_the_commits_reply(stream, cluster)
    if cured:
        assert any("does not run again" in note for note in stream.recover())
    stream.send(1_000)
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_rows_trimmed_before_they_were_read(stream: Any, cured: bool) -> None:
    """SPYT counts rows from the offset it asked for and gets the first ones there are, again."""
    stream.send(2_000)
    stream.client.trim_rows(stream.settings.queues[0], 0, 100)
    if cured:
        stream.recover()
        stream.drain()
        outcome = stream.outcome()
        assert (outcome.lost, outcome.duplicated) == (100, 0)
    else:
        stream.drain()
        assert stream.outcome().duplicated == 100


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_the_job_was_at_least_once_before(stream: Any, cured: bool) -> None:
    """The consumer is a batch behind the checkpoint then: SPYT waits for rows that it has
    already."""
    stream.send(2_000)
    stream.recover()
    with _as_at_least_once(stream):
        stream.drain()
    stream.send(2_000)
    positions, marker = stream.module("positions"), stream.module("marker")
    now = positions.read(stream.client, stream.settings)
    former = {**marker.wanted(now.queues, stream.settings), "guarantee": "at_least_once"}
    for path in (stream.settings.checkpoint, stream.settings.consumer):
        stream.client.set(f"{path}/@{positions.MARKER}", former)
    if cured:
        with pytest.raises(stream.module("errors").JobError, match="migrate"):
            stream.recover()
        assert stream.module("maintenance").migrate(stream.client, stream.settings)
        stream.recover()
        stream.drain()
        outcome = stream.outcome()
        assert (outcome.lost, outcome.duplicated) == (0, 0)
    else:
        with stream.running() as query:
            several_triggers(query, stream)
        outcome = stream.outcome()
        assert outcome.lost + outcome.duplicated > 0


def test_a_rewound_job_reads_again_from_there(stream: Any) -> None:
    stream.send(1_000)
    stream.recover()
    stream.drain()
    rewind = stream.module("maintenance").rewind
    queue = stream.settings.queues[0]
    with pytest.raises(stream.module("errors").JobError, match="not in the queue"):
        rewind(stream.client, stream.settings, "rows", [f"{queue}:0=100000"])
    rewind(stream.client, stream.settings, "rows", [f"{queue}:0=200"])
    stream.recover()
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 50)


@pytest.mark.parametrize(
    "text",
    [b"garbage", b"\xff\xfe", b"v1\n{}\n{}", b"v1\n{oops\n[1]", b"v1\n[]\n-"],
    ids=["short", "not text", "no partitions", "not JSON", "no map"],
)
def test_a_damaged_log_is_refused_and_rewind_is_the_way_out(stream: Any, text: bytes) -> None:
    checkpoint = stream.settings.checkpoint
    stream.client.create("map_node", f"{checkpoint}/offsets")
    stream.client.write_file(f"{checkpoint}/offsets/0", text, force_create=True)
    with pytest.raises(stream.module("errors").JobError, match="rewind"):
        stream.recover()
    stream.module("maintenance").rewind(stream.client, stream.settings, "earliest", [])
    stream.recover()
    assert stream.client.list(checkpoint) == []


def test_too_few_tablets_are_refused_with_the_number_that_would_do(stream: Any) -> None:
    sizing = stream.module("sizing")
    assert sizing.problem(100_000, 50_000, 1) is None
    assert "tablets are too few" in sizing.problem(200_000, 50_000, 4)
    tablets = sizing.default_tablets(1_000_000)
    assert sizing.problem(1_000_000, sizing.default_write_batch(1_000_000), tablets) is None
    big = replace(stream.settings, max_rows_per_partition=1_000_000)
    with pytest.raises(stream.module("errors").JobError, match="tablets would do"):
        stream.module("provision").require(stream.client, big)


def test_a_job_proxy_is_refused(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_YT_RPC_JOB_PROXY_ENABLED", "true")
    with pytest.raises(stream.module("errors").JobError, match="job proxy"):
        stream.module("pipeline").result(stream.spark, stream.client, stream.settings)


@contextmanager
def _as_at_least_once(stream: Any) -> Iterator[None]:
    """The session with SPYT's transactional mode switched off."""
    stream.spark.conf.set("spark.yt.streaming.transactional", "false")
    try:
        yield
    finally:
        stream.spark.conf.set("spark.yt.streaming.transactional", "true")
