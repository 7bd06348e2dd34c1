"""A batch reads the rows from the ledger's head on, whatever an older driver does to the consumer.

Without a transaction SPYT moves the consumer a batch late and without an old offset: in a driver
that was paused, after its successor's start has put it where the ledger is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import DataFrame

from minicluster.client import Fault
from minicluster.testing import Running
from tests.support import without_fix
from tests.support.helpers import (
    DriverOf,
    StreamOf,
    another_process,
    head_of,
    run_until_it_fails,
)
from tests.support.simulated_driver import Driver
from tests.support.static_outputs import make_static
from tests.support.verdict import EXACT, Verdict
from ytstream import RestartableError
from ytstream.ledger import positions
from ytstream.ledger.batch_row_ranges import RowRange
from ytstream.query.offset_check import Reads, verify_start
from ytstream.recovery import repositioning, spark_logs
from ytstream.settings.job_settings import SPYT
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait, wait_for_failure


@pytest.fixture
def connector() -> str:
    """Name SPYT's: our own moves no consumer a batch late."""
    return SPYT


spark_test = pytest.mark.spark
for_each = pytest.mark.parametrize("guarantee", ["at_least_once", "idempotent"])
with_and_without = pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "bare"])

A, B = "//home/a", "//home/b"
PLANNED = {A: {0: RowRange(20, 40)}, B: dict[int, RowRange]()}
READ = ({0: RowRange(20, 40), 1: RowRange(5, 5)}, dict[int, RowRange]())
"""What SPYT's plan has of the two queues: read as planned."""


# -- without a cluster ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (READ, None),
        # transform() unites its rows with themselves.
        (READ * 2, None),
        (
            ({0: RowRange(10, 40)}, {}),
            f"rows 10 to 39 of {A}, partition 0, and by the ledger rows 20",
        ),
        (({0: RowRange(30, 40)}, {}), "rows 30 to 39 of .* rows 20 to 39: something else moved"),
        # SPYT reads nothing when the consumer is beyond the batch's end in any partition.
        (({}, {}), f"no rows of {A}, partition 0, and by the ledger rows 20 to 39"),
        # No row is planned, and some would be read.
        (
            (*READ[:1], {3: RowRange(0, 7)}),
            f"rows 0 to 6 of {B}, partition 3, and by the ledger no",
        ),
        ((*READ, {0: RowRange(10, 40)}, {}), "rows 10 to 39 of"),
        ((*READ, {}), "the plan of batch 3-7 reads 3 sources for 2 queues"),
        ((), "reads 0 sources"),
    ],
)
def test_a_batch_reads_what_lies_between_the_head_and_its_end(
    read: Reads, said: str | None
) -> None:
    if said is None:
        verify_start("3-7", PLANNED, read)
    else:
        with pytest.raises(RestartableError, match=said):
            verify_start("3-7", PLANNED, read)


# -- without Spark -------------------------------------------------------------------------------


def _paused(driver_of: DriverOf, guarantee: str) -> tuple[Callable[[], None], Driver]:
    """Return how a paused driver moves the consumer behind its batch, and its successor."""
    older = driver_of(guarantee)
    older.run(3)
    ends = spark_logs.planned(older.client, older.folder, 0).ends
    newer = Driver(older.context, older.tablets)
    newer.start()
    newer.send(3)
    newer.batch()
    return lambda: older.confirm(ends), newer


@pytest.mark.thorough
@with_and_without
@for_each
@spark_test
def test_an_older_driver_moves_the_consumer_back_without_spark(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch, guarantee: str, fixed: bool
) -> None:
    confirm, newer = _paused(driver_of, guarantee)
    newer.send(2)
    newer.start()
    confirm()
    if fixed:
        with pytest.raises(RestartableError, match=r"would read rows 3 to 7 .* rows 6 to 7"):
            newer.batch()
        assert newer.start() == []
    else:
        without_fix.verify_no_start(monkeypatch)
    newer.batch()
    assert newer.outcome() == Verdict(repeated=0 if fixed else 2 * 3)


@pytest.mark.thorough
@for_each
@spark_test
def test_an_older_driver_moves_the_consumer_forward_without_spark(
    driver_of: DriverOf, guarantee: str
) -> None:
    """After `rewind`; the next start does not refuse, since the ledger says what was read."""
    confirm, newer = _paused(driver_of, guarantee)
    newer.rewind("earliest")
    newer.start(new_process=True)
    confirm()
    with pytest.raises(RestartableError, match=r"would read rows 3 to 5 .* rows 0 to 5"):
        newer.batch()
    (note,) = newer.start()
    assert "partition 0: row 3, the ledger has 0, partition 1: row 3" in note
    newer.batch()
    assert [row[1:] for row in newer.read()[-2:]] == [(0, 0, 6), (1, 0, 6)]


@pytest.mark.thorough
@for_each
@spark_test
def test_an_older_driver_moves_the_consumer_before_a_batch_is_closed(
    driver_of: DriverOf, guarantee: str
) -> None:
    """The transaction that closes the batch moves it to where the ledger is, from anywhere."""
    confirm, newer = _paused(driver_of, guarantee)
    newer.send(2)
    newer.batch(before_head=confirm)
    assert newer.consumed() == {0: 8, 1: 8}
    assert newer.outcome() == EXACT


@for_each
@spark_test
def test_an_older_driver_moves_the_consumer_while_a_batch_is_closed_without_spark(
    driver_of: DriverOf, cluster: Running, guarantee: str
) -> None:
    """Its move and the transaction write the same row: the transaction is repeated."""
    confirm, newer = _paused(driver_of, guarantee)
    newer.send(2)
    held = _about_to_close(newer.settings.ledger, cluster)
    with ThreadPoolExecutor() as pool:
        batch = pool.submit(newer.batch)
        cluster.client.faults.wait(held)
        confirm()
        cluster.client.faults.remove(held)
        batch.result()
    assert newer.consumed() == {0: 8, 1: 8}
    assert newer.outcome() == EXACT


def _about_to_close(ledger: str, cluster: Running) -> Fault:
    """Order the next batch without SPYT's transaction to wait before its own one commits."""
    faults = cluster.client.faults
    head = faults.add(method="ModifyRows", where={"path": ledger}, action="delay", seconds=0)
    return faults.add(method="CommitTransaction", armed_by=head, action="delay")


# -- the real SPYT -------------------------------------------------------------------------------


def _consumed(stream: Stream) -> dict[int, int]:
    (queue,) = positions.read(stream.client, stream.settings).queues
    return dict(queue.consumed)


def _about_to_move_the_consumer(cluster: Running) -> Fault:
    """Order the query, which has read all, to be held where SPYT opens its transaction for that.

    It is the first one of a batch: SPYT does it as soon as the batch is planned.
    """
    return cluster.client.faults.add(method="StartTransaction", where={"type": 1}, action="hold")


@pytest.mark.thorough
@spark_test
@pytest.mark.parametrize(
    ("guarantee", "static", "more", "fixed"),
    [
        pytest.param("at_least_once", True, 80, True, id="static-fixed"),
        pytest.param("at_least_once", True, 80, False, id="static-bare"),
        # A batch without rows to read has some all the same: the queue's end is the head.
        pytest.param("at_least_once", False, 0, True, id="plain-fixed"),
        pytest.param("at_least_once", False, 0, False, id="plain-bare"),
        pytest.param("idempotent", False, 80, True, id="idempotent-fixed"),
    ],
)
def test_an_older_driver_moves_the_consumer_back(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
    static: bool,
    more: int,
    fixed: bool,
) -> None:
    """It was paused after it had planned a batch; its successor has read on and starts again.

    Then SPYT in it moves the consumer back, before SPYT in the successor looks there.
    """
    older = stream_of(guarantee)
    if static:
        make_static(older, "output")
    older.send(80)
    older.recover()
    with older.running() as query:
        wait(drained(older.context), query)
        late = _about_to_move_the_consumer(cluster)
        older.send(80)
        cluster.client.faults.wait(late)
        newer = another_process(older)
        newer.drain()
        if more:
            newer.send(more)
        newer.recover()
        assert set(_consumed(newer).values()) == {40}
        cluster.client.faults.clear()
        assert "another instance of this job has started" in wait_for_failure(query)
    assert set(_consumed(newer).values()) == {20}
    if fixed:
        before = newer.found()
        said = run_until_it_fails(newer)
        wanted = f"rows 40 to {39 + more // 4}" if more else "no rows"
        assert re.search(rf"would read rows 20 to {39 + more // 4} of .* ledger {wanted}", said)
        assert newer.found() == before
        assert newer.recover() == []
    else:
        without_fix.verify_no_start(monkeypatch)
    with newer.running() as query:
        wait(lambda: head_of(newer).batch == 0, query)
    outcome = newer.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0 if fixed else 80)


def _twice(events: DataFrame) -> DataFrame:
    return events.union(events)


@pytest.mark.thorough
@spark_test
@pytest.mark.parametrize(
    ("guarantee", "uncounted", "fixed"),
    [
        pytest.param("at_least_once", True, True, id="uncounted-fixed"),
        pytest.param("at_least_once", True, False, id="uncounted-bare"),
        pytest.param("idempotent", False, True, id="idempotent-fixed"),
    ],
)
def test_an_older_driver_moves_the_consumer_forward(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
    uncounted: bool,
    fixed: bool,
) -> None:
    """After `rewind earliest`. Where the plan reads a queue twice, no count tells of it."""
    older = stream_of(guarantee)
    if uncounted:
        made = older.context.job.transform
        older.redeclare(transform=lambda events: made(_twice(events)))
    older.send(80)
    older.recover()
    with older.running() as query:
        wait(drained(older.context), query)
        late = _about_to_move_the_consumer(cluster)
        older.send(80)
        cluster.client.faults.wait(late)
        newer = another_process(older)
        repositioning.rewind(newer.context, newer.tablets, "earliest", ())
        newer.recover()
        cluster.client.faults.clear()
        assert "another instance of this job has started" in wait_for_failure(query)
    assert set(_consumed(newer).values()) == {20}
    if fixed:
        said = run_until_it_fails(newer)
        assert re.search(r"would read rows 20 to 39 of .* by the ledger rows 0 to 39", said)
        (note,) = newer.recover()
        assert "the consumer was ahead of the ledger" in note
        assert _consumed(newer) in ({}, dict.fromkeys(range(4), 0))
    else:
        without_fix.verify_no_start(monkeypatch)
    newer.drain()
    assert set(head_of(newer).ends[newer.settings.queues[0]].values()) == {40}
    if guarantee == "idempotent":
        assert newer.is_exact()
    else:  # 80 rows before, and all 160 again, each twice; without the fix 80 of these are missing
        assert newer.found().total() == 2 * (80 + (160 if fixed else 80))


@pytest.mark.thorough
@spark_test
@pytest.mark.parametrize(
    "guarantee", ["at_least_once", pytest.param("idempotent", marks=pytest.mark.journey)]
)
def test_an_older_driver_moves_the_consumer_while_a_batch_is_closed(
    stream_of: StreamOf, cluster: Running, guarantee: str
) -> None:
    """The outputs are not written again, and an idle queue finds the consumer at the head."""
    stream = stream_of(guarantee)
    stream.send(80)
    stream.recover()
    held, (queue,) = _about_to_close(stream.settings.ledger, cluster), stream.settings.queues
    with stream.running() as query:
        cluster.client.faults.wait(held)
        stream.client.advance_queue_consumer(stream.settings.consumer, queue, 1, None, 7)
        cluster.client.faults.remove(held)
        wait(drained(stream.context), query)
        assert _consumed(stream) == dict.fromkeys(range(4), 20)
    assert stream.is_exact()
