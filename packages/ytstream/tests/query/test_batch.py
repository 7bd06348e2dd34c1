"""What ends a micro-batch before it commits, while the job runs; with and without its fix."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from minicluster.testing import Running
from tests.support import without_fix
from tests.support.helpers import (
    ContextOf,
    StreamOf,
    fails_with,
    head_of,
    refusal_code,
    sampled,
)
from tests.support.status_steps import head_of_batch, write_rows
from ytstream import JobError, RestartableError
from ytstream.cluster.client import Client
from ytstream.connector.transform_plan import observed_name
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger.batch_commit import moved
from ytstream.ledger.batch_row_ranges import RowRange, ranges
from ytstream.ledger.ledger_rows import Head, head_row
from ytstream.provisioning import job_objects
from ytstream.query.batch import verify_head
from ytstream.query.read_audit import audit
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner
from ytstream.recovery.epoch import Epoch
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait, wait_for_failure

spark_test = pytest.mark.spark
with_and_without = pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "bare"])


# -- without a cluster ---------------------------------------------------------------------------


def test_a_batch_reads_from_where_the_last_one_ended() -> None:
    planned = ranges("3-7", ["//q"], {"//q": {0: 5, 1: 2}}, [{0: 8, 1: 2, 2: 4}])
    assert planned == {"//q": {0: RowRange(5, 8), 2: RowRange(0, 4)}}
    assert (planned["//q"][0].count, planned["//q"][0].sum) == (3, 5 + 6 + 7)
    after = moved(Head(batch=6, number=41, ends={"//q": {0: 5, 1: 2}}), 7, planned)
    assert after == Head(batch=7, number=42, ends={"//q": {0: 8, 1: 2, 2: 4}})


@pytest.mark.parametrize("state", [None, 0, 3])
def test_a_batch_leaves_a_removed_queue_where_it_is(state: int | None) -> None:
    """After a batch with an empty state nothing before it matters to a state."""
    planned = ranges("3-7", ["//q"], {"//q": {0: 5}}, [{0: 8}])
    since = {"//q": {0: 1}, "//gone": {0: 2}}
    head = Head(batch=6, ends={"//q": {0: 5}, "//gone": {0: 9}}, state_since=since)
    after = moved(head, 7, planned, state)
    assert after.ends == {"//q": {0: 8}, "//gone": {0: 9}}
    assert after.state_rows == state
    assert after.state_since == (after.ends if state == 0 else since)


def test_a_queue_that_has_had_no_row_is_not_read() -> None:
    begins: dict[str, dict[int, int]] = {"//a": {}, "//b": {0: 1}}
    planned = ranges("3-0", ["//a", "//b"], begins, [{}, {0: 2}])
    assert planned == {"//a": {}, "//b": {0: RowRange(1, 2)}}


def test_a_batch_that_lacks_a_partition_is_refused() -> None:
    """A queue had fewer tablets when it was planned: rows that were read have other numbers."""
    with pytest.raises(RestartableError, match=r"//q was resharded: batch 3-7 .* partition 1"):
        ranges("3-7", ["//q"], {"//q": {0: 5, 1: 2}}, [{0: 9}])
    assert ranges("3-7", ["//q"], {"//q": {0: 5, 1: 0}}, [{0: 9}]) == {"//q": {0: RowRange(5, 9)}}


def test_a_batch_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(RestartableError, match=r"batch 3-7 .* partition 0"):
        ranges("3-7", ["//q"], {"//q": {0: 5}}, [{0: 4}])


class _Queue:
    """The part of a client that the audit asks, about one queue."""

    def __init__(self, trimmed: int) -> None:
        self.trimmed, self.looks = trimmed, 0

    def get_tablet_infos(self, path: str, tablets: list[int]) -> dict[str, list[dict[str, int]]]:
        self.looks += 1
        return {"tablets": [{"trimmed_row_count": self.trimmed} for _ in tablets]}


@pytest.mark.parametrize(
    ("trimmed", "seen", "said"),
    [
        (0, (3, 18), None),
        # Trimmed after the rows were read: nothing was missed.
        (100, (3, 18), None),
        # Not counted: the plan reads the queue twice, or Spark has optimised the source away.
        (5, None, None),
        # A lost executor: Spark has counted what it computed again a second time.
        (5, (5, 29), None),
        (6, None, "trimmed to row 6"),
        (6, (3, 21), "trimmed to row 6"),
        (6, (2, 13), "trimmed to row 6"),
        (0, (2, 11), "read 2 rows"),
        (0, (3, 21), "read 3 rows"),
    ],
)
def test_the_audit(trimmed: int, seen: tuple[int, int] | None, said: str | None) -> None:
    queue = _Queue(trimmed)
    metrics = {observed_name("//q"): seen} if seen else {}

    def audited() -> None:
        audit(cast(Client, queue), "3-4", {"//q": {0: RowRange(5, 8)}}, metrics)

    if said is None:
        audited()
        assert queue.looks == (seen != (3, 18))
    else:
        with pytest.raises(RestartableError, match=said):
            audited()


def test_only_the_next_batch_of_the_ledger_may_commit(provisioned_of: ContextOf) -> None:
    context = provisioned_of("at_least_once")
    head, select = head_of_batch(context, 6), context.client.select_rows
    write_rows(context, head_row(head))
    mine = Epoch(head.epoch, head.owner)
    assert verify_head(context, select, mine, "", 6).batch == 5
    for other in (5, 7):
        with fails_with(ErrorCode.OTHER_ROWS):
            verify_head(context, select, mine, "", other)


# -- a queue that changes under a running job ----------------------------------------------------


@contextmanager
def _second_batch_held(stream: Stream, cluster: Running) -> Iterator[StreamingQuery]:
    """Run a first batch, and a second one up to where it reads; both have 20 rows a partition."""
    faults, tablets = cluster.client.faults, 4
    with stream.running() as query:
        stream.send(20 * tablets)
        wait(drained(stream.context), query)
        reading = faults.add(method="PullConsumer", times=None, action="hold")
        stream.send(20 * tablets)
        faults.wait(reading)
        yield query


_GUARANTEES = [("transactional",), ("idempotent",), ("at_least_once",)]


@contextmanager
def _trimmed_under_a_batch(stream: Stream, cluster: Running) -> Iterator[StreamingQuery]:
    """Let a batch read while 15 of its rows are trimmed; SPYT reads as many later rows instead."""
    stream.configure(max_rows_per_partition=20)
    with _second_batch_held(stream, cluster) as query:
        stream.send(80)
        stream.client.trim_rows(stream.settings.queues[0], 0, 35)
        cluster.client.faults.clear()
        yield query


@spark_test
@pytest.mark.parametrize("guarantee", sampled(_GUARANTEES, [_GUARANTEES[0], _GUARANTEES[2]]))
def test_a_queue_is_trimmed_while_a_batch_reads_it(
    stream_of: StreamOf, cluster: Running, guarantee: str
) -> None:
    """``on_data_loss`` decides whether the next start continues after the gap."""
    stream = stream_of(guarantee)
    queue = stream.settings.queues[0]
    with _trimmed_under_a_batch(stream, cluster) as query:
        said = wait_for_failure(query)
    assert f"{queue}, partition 0 was trimmed to row 35 while batch 1-1 read from row 20" in said
    assert head_of(stream).ends[queue][0] == 20
    if guarantee == "transactional":
        assert stream.found().total() == 80
    assert refusal_code(stream.recover) == ErrorCode.ROWS_TRIMMED
    stream.configure(on_data_loss="skip")
    assert any("15 rows" in note for note in stream.recover())
    stream.drain()
    outcome = stream.outcome()
    assert outcome.lost == 15
    assert outcome.duplicated == 0 or guarantee == "at_least_once"


@pytest.mark.thorough
@spark_test
@pytest.mark.parametrize("guarantee", sampled(_GUARANTEES, _GUARANTEES[:1]))
def test_without_the_audit_rows_of_a_trimmed_queue_are_lost_and_others_repeated(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    stream = stream_of(guarantee)
    without_fix.audit_nothing(monkeypatch)
    with _trimmed_under_a_batch(stream, cluster) as query:
        wait(drained(stream.context), query)
        outcome = stream.outcome()
        assert outcome.lost == 15
        assert outcome.duplicated == (0 if guarantee == "idempotent" else 15)


@spark_test
def test_a_queue_is_recreated_under_a_running_job(stream_of: StreamOf, cluster: Running) -> None:
    """The rows of the new queue that have numbers of the old one's would be passed over."""
    stream = stream_of("transactional")
    (queue,) = stream.settings.queues
    with stream.running() as query:
        stream.send(80)
        wait(drained(stream.context), query)
        stream.client.remove(queue)
        job_objects.provision(stream.context)
        stream.send(160)
        said = wait_for_failure(query)
    assert "was dropped and recreated" in said
    assert refusal_code(stream.recover) == ErrorCode.QUEUE_RECREATED
    assert stream.found().total() == 80


# -- a consumer that something else moves --------------------------------------------------------


@spark_test
@with_and_without
def test_the_consumer_is_moved_back(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, fixed: bool
) -> None:
    """By hand; or SPYT's own move did nothing, and its transaction committed all the same.

    A new query would read those rows again. The start moves the consumer to where the ledger is;
    without that move the batch is refused, by the consumer and by its plan alone, and without all
    three the rows come twice.
    """
    stream = stream_of("transactional")
    (queue,) = stream.settings.queues
    with stream.running() as query:
        stream.send(80)
        wait(drained(stream.context), query)
        stream.client.advance_queue_consumer(stream.settings.consumer, queue, 0, 20, 10)
        stream.send(80)
        said = wait_for_failure(query)
    assert "begins at row 20" in said
    assert "but the consumer is at row 10: something else moved it" in said
    if fixed:
        assert any("was behind the ledger" in note for note in stream.recover())
    else:
        without_fix.move_no_consumer(monkeypatch)
        with fails_with(ErrorCode.CONSUMER_MOVED):
            stream.drain()
        without_fix.verify_no_consumer(monkeypatch)
        with fails_with(ErrorCode.CONSUMER_MOVED):
            stream.drain()
        without_fix.verify_no_start(monkeypatch)
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0 if fixed else 10)


@pytest.mark.thorough
@spark_test
def test_the_consumer_is_moved_forward(stream_of: StreamOf) -> None:
    """Under a running job and while it is stopped: rows would be skipped."""
    stream = stream_of("transactional")
    (queue,) = stream.settings.queues
    with stream.running() as query:
        stream.send(80)
        wait(drained(stream.context), query)
        stream.client.advance_queue_consumer(stream.settings.consumer, queue, 0, 20, 25)
        stream.send(80)
        said = wait_for_failure(query)
    assert "but the consumer is at row 25: something else moved it" in said
    assert refusal_code(stream.recover) == ErrorCode.CONSUMER_MOVED
    stream.client.advance_queue_consumer(stream.settings.consumer, queue, 0, 25, 20)
    stream.drain()
    assert stream.is_exact()


@pytest.mark.thorough
@spark_test
def test_the_consumer_is_recreated_after_one_batch(stream_of: StreamOf) -> None:
    """The head says that the batch has happened; an empty consumer says nothing."""
    stream = stream_of("transactional")
    stream.send(80)
    stream.drain()
    stream.client.remove(stream.settings.consumer)
    job_objects.provision(stream.context)
    stream.send(80)
    stream.drain()
    assert stream.is_exact()
    assert head_of(stream).number == 2


# -- who says it ---------------------------------------------------------------------------------


@pytest.mark.thorough
@spark_test
def test_the_supervisor_says_what_ended_the_batch(stream_of: StreamOf, cluster: Running) -> None:
    stream = stream_of("transactional")
    stream.send(80)
    faults = cluster.client.faults
    pull = faults.add(method="PullConsumer", times=None, action="hold")
    runner = QueryRunner(stream.context, stream.spark, stream.tablets, StopSignal())

    def trim() -> None:
        faults.wait(pull)
        stream.client.trim_rows(stream.settings.queues[0], 0, 15)
        faults.remove(pull)

    trimming = threading.Thread(target=trim)
    trimming.start()
    try:
        with fails_with(ErrorCode.ROWS_TRIMMED):
            runner.run()
        with pytest.raises(JobError, match=r"15 rows of .* were trimmed"):
            runner.run()
    finally:
        trimming.join()
