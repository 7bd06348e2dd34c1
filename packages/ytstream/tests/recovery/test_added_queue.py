"""A queue comes to a job with state, or goes, and the state is kept; with Spark and SPYT.

test_start.py plays the same without Spark, with deaths at each step; the logs are in
test_checkpoint_repair.py.
"""

from __future__ import annotations

from collections import Counter

import pytest

from minicluster.testing import Running
from tests.support import without_fix
from tests.support.helpers import (
    MIGRATED,
    StreamOf,
    another_process,
    die_between_the_logs,
    head_of,
    refusal,
    refusal_code,
    run_until_it_fails,
)
from ytstream.errors.error_codes import ErrorCode
from ytstream.provisioning import job_objects
from ytstream.recovery import migration, repositioning, spark_logs
from ytstream.settings.job_settings import late_rows_of
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

WINDOW_US = 10_000_000


def _name(stream: Stream, *names: str, accept: bool = True) -> None:
    """Name these queues in the configuration, and accept that rows of theirs may be late."""
    folder = stream.settings.queues[0].rpartition("/")[0]
    queues = tuple(sorted(f"{folder}/{name}" for name in names))
    stream.configure(queues=queues, accept=tuple(map(late_rows_of, queues)) if accept else ())
    job_objects.provision(stream.context)


def _grow(stream: Stream) -> None:
    """Send rows into all queues, and read them in another process."""
    stream.send(200)
    another_process(stream).drain()


def _leave(stream: Stream) -> None:
    assert refusal_code(stream.recover) == ErrorCode.QUEUE_REMOVED
    assert migration.migrate(stream.context, stream.tablets)[-1] == MIGRATED


@pytest.mark.journey
def test_queues_come_and_go(stream_of: StreamOf, cluster: Running) -> None:
    """Each time windows are open that have rows from before and from after."""
    stream = stream_of("transactional", "window")
    _name(stream, "m", "p")
    _grow(stream)
    stream.send(200)
    die_between_the_logs(stream, cluster)
    _name(stream, "m", "p", "z")
    _grow(stream)
    _name(stream, "a", "m", "p", "z")
    _grow(stream)
    _name(stream, "a", "p", "z")
    _leave(stream)
    _grow(stream)
    _name(stream, "b", "p", "z")
    _leave(stream)
    _grow(stream)
    _name(stream, "b", "m", "p", "z")  # back
    _grow(stream)
    another_process(stream).close()
    assert stream.is_exact()
    assert len(head_of(stream).removed) == 1


def _a_queue_in_front_of_a_planned_batch(stream: Stream, cluster: Running) -> None:
    """Leave a batch planned for one queue, and name another one in front of it."""
    _name(stream, "m")
    for _ in range(2):
        stream.send(200)
        stream.drain()
    stream.send(200)
    planned = die_between_the_logs(stream, cluster)
    assert spark_logs.numbers(stream.client, f"{stream.folder}/offsets")[-1] == planned
    _name(stream, "a", "m")


@pytest.mark.thorough
def test_a_queue_comes_in_front_where_a_batch_was_planned(
    stream_of: StreamOf, cluster: Running
) -> None:
    stream = stream_of("transactional", "window")
    _a_queue_in_front_of_a_planned_batch(stream, cluster)
    stream.send(1_000)
    another_process(stream).close()
    assert stream.is_exact()


@pytest.mark.thorough
def test_a_queue_in_front_of_a_planned_batch_needs_two_entries_with_its_sources(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark compares the sources with those of the last entry, and of the one before it."""
    stream = stream_of("transactional", "window")
    _a_queue_in_front_of_a_planned_batch(stream, cluster)
    with monkeypatch.context() as patched:
        without_fix.keep_the_sources(patched)
        assert refusal_code(stream.recover) == ErrorCode.CHECKPOINT_DAMAGED
    without_fix.keep_the_sources_of_the_batch_before(monkeypatch)
    assert "sources in the checkpoint" in run_until_it_fails(stream)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("guarantee", "processing"),
    [
        ("at_least_once", "window"),
        ("transactional", "deduplicate"),
        pytest.param("transactional", "aggregate", marks=pytest.mark.journey),
        pytest.param("transactional", "sessions", marks=pytest.mark.journey),
    ],
)
def test_a_queue_is_renamed(stream_of: StreamOf, guarantee: str, processing: str) -> None:
    """One goes and another one comes, in front of the one that stays."""
    stream = stream_of(guarantee, processing)
    _name(stream, "m", "p")
    stream.send(400)
    stream.drain()
    if processing == "deduplicate":  # the state knows them
        repeats = stream.sent[-50:]
    _name(stream, "a", "m")
    _leave(stream)
    stream.send(400)
    if processing == "deduplicate":
        stream.publish(repeats)
    another_process(stream).close()
    assert stream.is_exact()


@pytest.mark.thorough
def test_late_rows_of_a_queue_that_joins_are_left_out_with_consent(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "window")
    stream.send(3_000)
    stream.drain()
    _name(stream, "a", "queue-0", accept=False)
    late = stream.sample.make(15, 7)  # of the first window, which was written
    stream.publish(late, 0)
    del stream.sent[-len(late) :]
    stream.send(200)
    told = "has 215 rows that the job has not read"
    assert told in refusal(stream.recover)
    _name(stream, "a", "queue-0")
    assert told in stream.recover()[-1]
    stream.close()
    assert stream.is_exact()


def test_the_ledger_knows_how_much_state_there_is(stream_of: StreamOf) -> None:
    """A `rewind` says it, and from which rows on nothing is lost."""
    stream = stream_of("transactional", "window")
    stream.send(3_000)
    stream.drain()
    head = head_of(stream)
    watermark = 1_000 * spark_logs.watermark(stream.client, stream.folder, head.batch)
    groups = Counter((row["auction"], row["date_time"] // WINDOW_US) for row in stream.sent)
    open_ = [group for group in groups if (group[1] + 1) * WINDOW_US > watermark]
    assert head.state_rows == len(open_) > 0
    assert head.state_since == {queue: dict.fromkeys(range(4), 0) for queue in head.queues}
    told = repositioning.rewind(stream.context, stream.tablets, "earliest", ())
    assert f"the state is dropped: groups in open windows, {len(open_)} of them" in told
    assert "all rows that it was made of are read again" in told
    assert head_of(stream).state_rows == 0
