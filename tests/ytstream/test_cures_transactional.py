"""Faults that break SPYT's transactional mode, with and without the job's cure; jobs without state.

Each test of a pair plays the same break. "bare" leaves the cure out and shows what it is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from minicluster.testing import Running
from tests.ytstream.helpers import (
    StreamOf,
    adopt,
    die_between_the_logs,
    lose_the_commits_reply,
    refusal,
    several_triggers,
)
from ytstream.guarantees import guarantee_of
from ytstream.recovery.operator import migrate, rewind
from ytstream.testing.stream import Stream

pytestmark = pytest.mark.spark

with_and_without = pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])


@with_and_without
def test_death_between_commit_log_and_transaction(
    stream_of: StreamOf, cluster: Running, cured: bool
) -> None:
    """With a backlog SPYT takes the batch for done, waits for newer rows and never sees any."""
    stream = stream_of("transactional", "join" if cured else "map")
    stream.configure(max_rows_per_partition=200)
    stream.send(4 * 200 * 3)
    stream.recover()
    die_between_the_logs(stream, cluster, batch=1)
    if cured:
        assert any("the batch will run again" in note for note in stream.recover())
        stream.drain()
        assert stream.is_exact()
    else:
        before = stream.found().total()
        stream.send(100)
        with stream.running() as query:
            several_triggers(query, stream, cluster)
        assert stream.found().total() == before < len(stream.sent)


def test_death_in_the_first_batch_after_a_lost_checkpoint(
    stream_of: StreamOf, cluster: Running
) -> None:
    """The new checkpoint begins where the consumer is, not where the lost one began."""
    stream = stream_of("transactional")
    stream.send(200)
    stream.recover()
    stream.drain()
    stream.forget()
    stream.recover()
    stream.send(200)
    die_between_the_logs(stream, cluster, batch=0)
    assert any("the batch will run again" in note for note in stream.recover())
    stream.drain()
    assert stream.is_exact()


@with_and_without
def test_the_commits_reply_is_lost(stream_of: StreamOf, cluster: Running, cured: bool) -> None:
    """The transaction is in, SPYT does not know it and removes ``commits/N``.

    Without state the replay is an empty batch: both ways are exact, and only the log differs.
    """
    stream = stream_of("transactional")
    stream.send(200)
    stream.recover()
    lose_the_commits_reply(stream, cluster)
    if cured:
        assert any("it will not run again" in note for note in stream.recover())
    stream.send(200)
    stream.drain()
    assert stream.is_exact()


@with_and_without
def test_the_job_was_at_least_once_before(
    stream_of: StreamOf, cluster: Running, cured: bool
) -> None:
    """The consumer is a batch behind the checkpoint then: SPYT waits for rows it already has."""
    stream = stream_of("transactional")
    stream.send(400)
    with _declared(stream, "at_least_once"):
        stream.recover()
        stream.drain()
    stream.send(400)
    if cured:
        assert "migrate" in refusal(stream.recover)
        assert migrate(stream.connection)
        stream.recover()
        stream.drain()
        assert stream.is_exact()
    else:
        with stream.running() as query:
            several_triggers(query, stream, cluster)
        assert not stream.is_exact()


def test_a_job_that_was_stopped_in_a_transaction_is_not_migrated_away(
    stream_of: StreamOf, cluster: Running
) -> None:
    """Only `transactional` knows whether its last batch committed."""
    stream = stream_of("transactional")
    stream.send(200)
    stream.recover()
    die_between_the_logs(stream, cluster, batch=0)
    with _declared(stream, "at_least_once"):
        text = refusal(lambda: migrate(stream.connection))
    assert "not where the checkpoint is" in text
    stream.recover()
    stream.drain()
    with _declared(stream, "at_least_once"):
        assert migrate(stream.connection)
        stream.recover()
        stream.send(200)
        stream.drain()
        assert stream.is_exact()


def test_a_rewound_job_reads_again_from_there(stream_of: StreamOf) -> None:
    stream = stream_of("transactional")
    stream.send(400)
    stream.recover()
    stream.drain()
    queue = stream.settings.queues[0]
    rewind(stream.connection, "rows", [f"{queue}:0=50"])
    stream.recover()
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 50)


@contextmanager
def _declared(stream: Stream, guarantee: str) -> Iterator[None]:
    """Give the stream another guarantee, as an edit of job.py would."""
    before = stream.connection
    job = replace(before.job, guarantee=guarantee)
    stream.connection = replace(before, job=job, guarantee=guarantee_of(job))
    adopt(stream.spark, stream.connection)
    try:
        yield
    finally:
        stream.connection = before
        adopt(stream.spark, before)
