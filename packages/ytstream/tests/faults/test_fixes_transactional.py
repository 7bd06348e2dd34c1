"""Faults that break SPYT's transactional mode, with and without the job's fix; jobs without state.

Each test of a pair plays the same break. "bare" leaves the fix out and shows what it is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from minicluster.testing import Running
from tests.support import without_fix
from tests.support.helpers import (
    StreamOf,
    adopt,
    another_process,
    die_between_the_logs,
    lose_the_commits_reply,
    refusal,
    trim_unread,
)
from ytstream.guarantees import guarantee_of
from ytstream.recovery.migration import migrate
from ytstream.recovery.repositioning import rewind
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("processing", "queues", "fixed"),
    [("join", 1, True), ("map", 2, True), ("map", 1, False)],
    ids=["fixed", "fixed-2", "bare"],
)
def test_death_between_commit_log_and_transaction(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    queues: int,
    fixed: bool,
) -> None:
    """Spark counts the batch as done. The head, written in its transaction, does not.

    A head that is written apart counts it too: the rows are lost.
    """
    stream = stream_of("transactional", processing, queues)
    stream.configure(max_rows_per_partition=50)
    stream.send(4 * 50 * 2)
    if not fixed:
        without_fix.write_the_head_apart(monkeypatch, stream)
    die_between_the_logs(stream, cluster, after=1)
    # A job without state needs no checkpoint to go on.
    stream.client.remove(stream.settings.checkpoint, recursive=True)
    stream.send(100, queues=(0,))
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0 if fixed else 200, 0)


def test_the_commits_reply_is_lost_and_rows_are_trimmed(
    stream_of: StreamOf, cluster: Running
) -> None:
    """The transaction is in; SPYT does not know it. The next start begins behind batch and gap."""
    stream = stream_of("transactional")
    stream.send(200)
    lose_the_commits_reply(stream, cluster)
    trim_unread(stream, 20)
    assert "20 rows" in refusal(stream.recover)
    stream.configure(on_data_loss="skip")
    assert any("20 rows" in note for note in stream.recover())
    stream.drain()
    assert stream.is_exact()


@pytest.mark.thorough
def test_the_job_was_at_least_once_before(stream_of: StreamOf) -> None:
    """The consumer is where the ledger is then, too."""
    stream = stream_of("transactional")
    stream.send(200)
    with _declared(stream, "at_least_once"):
        stream.drain()
    stream.send(200)
    assert "run `migrate`" in refusal(stream.recover)
    assert migrate(stream.context, stream.tablets)
    another_process(stream).drain()
    assert stream.is_exact()


@pytest.mark.thorough
def test_a_job_that_died_in_a_transaction_can_be_migrated(
    stream_of: StreamOf, cluster: Running
) -> None:
    """The head says, to every guarantee, that its last batch did not happen."""
    stream = stream_of("transactional")
    stream.send(200)
    die_between_the_logs(stream, cluster)
    with _declared(stream, "at_least_once"):
        assert migrate(stream.context, stream.tablets)
        another_process(stream).drain()
        assert stream.is_exact()


@pytest.mark.thorough
def test_a_rewound_job_reads_again_from_there(stream_of: StreamOf) -> None:
    stream = stream_of("transactional")
    stream.send(400)
    stream.drain()
    queue = stream.settings.queues[0]
    rewind(stream.context, stream.tablets, "rows", [f"{queue}:0=50"])
    another_process(stream).drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 50)


@contextmanager
def _declared(stream: Stream, guarantee: str) -> Iterator[None]:
    """Give the stream another guarantee, as an edit of job.py would."""
    before = stream.context
    job = replace(before.job, guarantee=guarantee)
    stream.context = replace(before, job=job, guarantee=guarantee_of(job))
    adopt(stream.spark, stream.context)
    try:
        yield
    finally:
        stream.context = before
        adopt(stream.spark, before)
