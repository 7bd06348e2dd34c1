"""What ends a micro-batch before it commits, while the job runs; with and without its cure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from minicluster.testing import Running
from tests.codes import TABLET_LOCK_CONFLICT
from tests.ytstream.helpers import StreamOf, refusal, unconnected
from ytstream import JobError, RestartableError, provision
from ytstream.demo.scenario import drained
from ytstream.plan import observed_name
from ytstream.positions import Begun
from ytstream.query import pipeline
from ytstream.query.batch import Batch, Range, audit, moved, ranges
from ytstream.query.supervisor import Life
from ytstream.recovery import fence
from ytstream.recovery.lock import InstanceLock
from ytstream.testing.stream import Stream, settle, wait, wait_for_failure

spark_test = pytest.mark.spark
with_and_without = pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
each_guarantee = pytest.mark.parametrize(
    "guarantee", ["transactional", "idempotent", "at_least_once"]
)


# -- without a cluster ---------------------------------------------------------------------------


def test_a_batch_reads_from_where_the_last_one_ended() -> None:
    planned = ranges(7, [{0: 5, 1: 2}], [{0: 8, 1: 2, 2: 4}])
    assert planned == [{0: Range(5, 8), 2: Range(0, 4)}]
    assert (planned[0][0].count, planned[0][0].sum) == (3, 5 + 6 + 7)
    assert moved([{0: 5, 1: 2}], planned) == [{0: 8, 1: 2, 2: 4}]


def test_a_queue_that_has_had_no_row_is_not_read() -> None:
    assert ranges(0, [{}, {0: 1}], [{}, {0: 2}]) == [{}, {0: Range(1, 2)}]


def test_a_batch_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(RestartableError, match=r"batch 7 .* partition 0"):
        ranges(7, [{0: 5}], [{0: 4}])


class _Queue:
    """The part of a client that the audit asks, about one queue."""

    def __init__(self, id_: str, trimmed: int) -> None:
        self.id, self.trimmed, self.looks = id_, trimmed, 0

    def get(self, path: str) -> str:
        return self.id

    def get_tablet_infos(self, path: str, tablets: list[int]) -> dict[str, list[dict[str, int]]]:
        self.looks += 1
        return {"tablets": [{"trimmed_row_count": self.trimmed} for _ in tablets]}


@pytest.mark.parametrize(
    ("id_", "trimmed", "seen", "said"),
    [
        ("id", 0, (3, 18), None),
        # Trimmed after the rows were read: nothing was missed.
        ("id", 100, (3, 18), None),
        # Not counted: the plan reads the queue twice, or Spark has optimised the source away.
        ("id", 5, None, None),
        # A lost executor: Spark has counted what it computed again a second time.
        ("id", 5, (5, 29), None),
        ("id", 6, None, "trimmed to row 6"),
        ("id", 6, (3, 21), "trimmed to row 6"),
        ("id", 6, (2, 13), "trimmed to row 6"),
        ("id", 0, (2, 11), "read 2 rows"),
        ("id", 0, (3, 21), "read 3 rows"),
        ("another", 0, (3, 18), "dropped and recreated"),
    ],
)
def test_the_audit(id_: str, trimmed: int, seen: tuple[int, int] | None, said: str | None) -> None:
    connection = unconnected("transactional")
    client = _Queue(id_, trimmed)
    object.__setattr__(connection, "client", client)
    begun = Begun(("id",), [{0: 5}])
    metrics = {observed_name(connection.settings.queues[0]): seen} if seen else {}

    def audited() -> None:
        audit(connection, 4, begun, [{0: Range(5, 8)}], metrics)

    if said is None:
        audited()
        assert client.looks == (seen != (3, 18))
    else:
        with pytest.raises(RestartableError, match=said):
            audited()


# -- a queue that changes under the batch --------------------------------------------------------


@contextmanager
def interrupted(stream: Stream, cluster: Running, change: Callable[[], object]) -> Iterator[str]:
    """Run, and make the change between the planning of the first batch and its reading."""
    faults = cluster.client.faults
    pull = faults.add(method="PullConsumer", times=None, action="hold")
    begun, stream._begun = stream._begun, None
    batch = Batch(stream.connection, begun)
    query = pipeline.start(stream.rows(), batch)
    try:
        faults.wait(pull)
        change()
        faults.remove(pull)
        if begun is None:
            settle(query)
            yield ""
        else:
            wait_for_failure(query)
            yield str(batch.failure)
    finally:
        query.stop()


@spark_test
@with_and_without
@each_guarantee
def test_a_queue_is_trimmed_while_a_batch_reads_it(
    stream_of: StreamOf, cluster: Running, guarantee: str, cured: bool
) -> None:
    """SPYT takes as many later rows instead: rows are lost, others come twice, and all is well."""
    stream = stream_of(guarantee)
    stream.configure(max_rows_per_partition=100)
    stream.send(4 * 300)
    if cured:
        stream.recover()
    queue = stream.settings.queues[0]
    with interrupted(stream, cluster, lambda: stream.client.trim_rows(queue, 0, 60)) as said:
        if cured:
            assert f"{queue}, partition 0 was trimmed to row 60 while batch 0 read from" in said
    if not cured:
        stream.drain()
        outcome = stream.outcome()
        assert outcome.lost == 60
        assert outcome.duplicated == (0 if guarantee == "idempotent" else 60)
        return
    if guarantee == "transactional":
        assert stream.found().total() == 0
    assert "60 rows" in refusal(stream.recover)
    stream.configure(on_data_loss="skip")
    assert any("60 rows" in note for note in stream.recover())
    stream.drain()
    outcome = stream.outcome()
    assert outcome.lost == 60
    assert outcome.duplicated == 0 or guarantee == "at_least_once"


@spark_test
def test_a_queue_is_recreated_under_a_running_job(stream_of: StreamOf, cluster: Running) -> None:
    """The rows of the new queue that have numbers of the old one's would be passed over."""
    stream = stream_of("transactional")
    stream.send(400)
    stream.recover()
    stream.drain()
    (queue,) = stream.settings.queues
    stream.recover()
    begun, stream._begun = stream._begun, None
    batch = Batch(stream.connection, begun)
    stream.client.remove(queue)
    provision.provision(stream.connection)
    query = pipeline.start(stream.rows(), batch)
    try:
        stream.send(800)
        wait_for_failure(query)
    finally:
        query.stop()
    assert "was dropped and recreated" in str(batch.failure)
    assert "dropped and recreated" in refusal(stream.recover)
    assert stream.found().total() == 400


@spark_test
def test_the_consumer_is_moved_under_a_running_job(stream_of: StreamOf, cluster: Running) -> None:
    stream = stream_of("transactional")
    stream.send(400)
    stream.recover()
    begun, stream._begun = stream._begun, None
    batch = Batch(stream.connection, begun)
    query = pipeline.start(stream.rows(), batch)
    (queue,) = stream.settings.queues
    try:
        wait(drained(stream.connection), query)
        stream.client.advance_queue_consumer(stream.settings.consumer, queue, 0, 100, 50)
        stream.send(400)
        wait_for_failure(query)
    finally:
        query.stop()
    assert "the consumer is at row 50: something else moved it" in str(batch.failure)
    assert stream.is_exact() is False
    assert stream.outcome().duplicated == 0


# -- an older driver -----------------------------------------------------------------------------


@spark_test
@pytest.mark.parametrize("queues", [1, 2])
@pytest.mark.parametrize(
    ("processing", "cured"),
    # Without the fence the window's state counts the batch twice. Stateless jobs are lucky here.
    [("map", True), ("deduplicate", True), ("window", True), ("window", False)],
)
def test_a_commit_is_applied_after_recovery(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    queues: int,
    cured: bool,
) -> None:
    """The connection breaks at the batch's commit; the cluster applies it when recovery is over."""
    if not cured:
        monkeypatch.setattr(fence, "raise_fence", lambda *_: None)
    stream = stream_of("transactional", processing, queues)
    stream.configure(max_rows_per_partition=200)
    for _ in range(3):
        stream.send(400)
    stream.recover()
    faults = cluster.client.faults
    tablets = sum(provision.queue_tablets(stream.client, stream.settings).values())
    advanced = faults.add(method="AdvanceConsumer", skip=tablets, action="delay", seconds=0)
    late = faults.add(method="CommitTransaction", armed_by=advanced, action="apply_late")
    with stream.running() as query:
        wait_for_failure(query)
    faults.remove(advanced)
    stream.recover()
    if not cured:
        stream._begun = None  # nothing is audited either
    # The next batch has read the consumer and has not opened its transaction.
    opening = faults.add(method="StartTransaction", where={"type": 1}, action="hold")
    with stream.running() as query:
        faults.wait(opening)
        (entry,) = faults.release(late)
        faults.clear()
        wait(drained(stream.connection), query)
    stream.close()
    if cured:
        assert entry.error is not None
        assert entry.error["code"] == TABLET_LOCK_CONFLICT
    else:
        assert entry.error is None
    assert stream.is_exact() == cured


@spark_test
def test_a_batch_of_a_driver_without_the_lock_does_not_commit(stream_of: StreamOf) -> None:
    """A driver that drains after SIGTERM would not look at the lock again."""
    stream = stream_of("transactional")
    stream.send(400)
    stream.recover()
    batch = Batch(stream.connection, stream._begun, is_alone=lambda: False)
    query = pipeline.start(stream.rows(), batch)
    try:
        wait_for_failure(query)
    finally:
        query.stop()
    assert "the instance lock was lost" in str(batch.failure)
    assert stream.found().total() == 0


@spark_test
def test_the_supervisor_says_what_ended_the_batch(stream_of: StreamOf, cluster: Running) -> None:
    stream = stream_of("transactional")
    stream.send(400)
    faults = cluster.client.faults
    pull = faults.add(method="PullConsumer", times=None, action="hold")
    lock = InstanceLock(stream.client, stream.settings.consumer)
    lock.acquire(print)
    life = Life(stream.connection, stream.spark, lock, threading.Event())

    def trim() -> None:
        faults.wait(pull)
        stream.client.trim_rows(stream.settings.queues[0], 0, 60)
        faults.remove(pull)

    trimming = threading.Thread(target=trim)
    trimming.start()
    try:
        with pytest.raises(RestartableError, match="was trimmed to row 60 while batch 0 read"):
            life.run()
        with pytest.raises(JobError, match=r"60 rows of .* were trimmed"):
            life.run()
    finally:
        trimming.join()
        lock.release()
