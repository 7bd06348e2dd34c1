"""SPYT's own streaming scenarios, in our words, through the real connector.

SPYT's suites of streaming are in the repository ytsaurus/ytsaurus-spyt, in
`data-source-extended/src/test/scala/tech/ytsaurus/spyt/streaming`. No other suite has a stream.

- `YTsaurusStreamingTest` runs on a cluster. It has fourteen scenarios, and all are here.
- `YtTransactionalStreamingTest` (7), `YtStreamingSourceTest` (22) and `YtQueueUtilsTest` (10) call
  single classes, mostly with mocks. The cases whose outcome shows in tables are here too. The
  single calls are in ytstream's tests of its connector, `test_spyt_source.py`.

Each test names what it follows, as `SPYT: suite: scenario`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from yt.yson import YsonUint64

from packages.minicluster.tests.support.spyt_lab import Lab, WorkerError
from packages.minicluster.tests.support.spyt_stage import COLUMNS, TABLETS, Row, Stage, identity
from tests.support.server_errors import UNAVAILABLE
from tests.support.sparks import SPARKS
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,  # as test_connector.py
    # With the Spark of each version in test_connector.py.
    pytest.mark.parametrize("lab", SPARKS, indirect=True),
]

TIMEOUT = 60.0
NAMES = [column["name"] for column in COLUMNS]
TABLET, INDEX = "__spyt_streaming_src_tablet_index", "__spyt_streaming_src_row_index"
ORIGIN = [
    {"name": "queue", "type": "string", "sort_order": "ascending"},
    {"name": TABLET, "type": "int64", "sort_order": "ascending"},
    {"name": INDEX, "type": "int64", "sort_order": "ascending"},
]


def ids(rows: list[Row]) -> list[int]:
    return sorted(row["id"] for row in rows)


@pytest.fixture
def stage(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage for one test; the queries that still run are stopped in the end."""
    lab.cluster.client.faults.clear()
    lab.cluster.client.journal.clear()
    made = Stage(lab, f"//home/{request.node.name.translate(str.maketrans('[].', '---'))}")
    yield made
    made.stop(*reversed(made.running))


def test_rows_of_another_source_are_written(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: write YT queue."""
    columns = [{"name": "id", "type": "int64"}, {"name": "digit", "type": "int64"}]
    output = stage.table("output", columns)
    stage.start(
        "write",
        source="rate",
        reading={"rowsPerSecond": "100"},
        where="value < 50",
        select=["value as id", "floor(rand() * 10) as digit"],
        output=output,
    )
    eventually(lambda: len(stage.rows(output)) >= 50)
    stage.stop("write")
    rows = stage.rows(output)
    assert ids(rows) == list(range(50))
    assert {row["digit"] for row in rows} <= set(range(10))


def test_batches_get_the_rows_of_a_queue(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: read YT queue."""
    queue = stage.table("queue")
    consumer = stage.consumer(queue)
    stage.start("read", queue=queue, consumer=consumer)
    for first in range(0, 50, 10):
        stage.put(queue, first, first + 10)
        stage.drain("read")
    batches = stage.lab.worker.ask("take", name="read")
    assert [len(batch) for batch in batches] == [10] * 5
    found = [row for batch in batches for _, row in batch]
    assert sorted(found, key=identity) == stage.rows(queue)
    assert len(found) == 50


def test_rows_pass_from_a_queue_to_a_queue(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: run pipeline on YT queues."""
    queue, output = stage.table("queue"), stage.table("output")
    stage.start("pipeline", queue=queue, consumer=stage.consumer(queue), output=output)
    for first in range(0, 50, 10):
        stage.put(queue, first, first + 10)
        stage.drain("pipeline")
    rows = stage.rows(output)
    assert rows == stage.rows(queue)
    assert ids(rows) == list(range(50))
    options = {"enable_inconsistent_read": "true"}
    read = stage.lab.worker.ask("read", path=output, options=options)
    assert sorted(read) == [list(row.values()) for row in rows]


def test_a_batch_takes_no_more_rows_of_a_partition_than_allowed(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: correct streaming with max_rows_per_partition."""
    queue = stage.table("queue")
    stage.put(queue, 0, 50)
    limit = {"max_rows_per_partition": "8"}
    stage.start("limited", queue=queue, consumer=stage.consumer(queue), reading=limit)
    stage.drain("limited")
    batches = stage.lab.worker.ask("take", name="limited")
    assert stage.positions(queue) == {0: 17, 1: 17, 2: 16}
    assert [Counter(partition for partition, _ in batch) for batch in batches] == [
        {0: 8, 1: 8, 2: 8},
        {0: 8, 1: 8, 2: 8},
        {0: 1, 1: 1},
    ]
    assert ids([row for batch in batches for _, row in batch]) == list(range(50))


def test_the_limit_counts_from_where_the_consumer_stands(stage: Stage) -> None:
    """Each partition by itself: one far behind, one near its end, one whose end is nearer still.

    SPYT: YtStreamingSourceTest: clamp each partition independently in latestOffset for
    multi-partition queues; use provider for current offset in latestOffset if start is not defined.
    SPYT: YtTransactionalStreamingTest: still compute correct end offset when max_rows_per_partition
    is set.
    """
    queue = stage.table("queue")
    consumer = stage.consumer(queue)
    stage.put(queue, 0, 90)
    for tablet, position in ((0, 5), (1, 25), (2, 28)):
        stage.lab.yt.advance_consumer(consumer, queue, tablet, None, position)
    limit = {"max_rows_per_partition": "10"}
    stage.start("limited", queue=queue, consumer=consumer, reading=limit, transactional=True)
    stage.drain("limited")
    batches = stage.lab.worker.ask("take", name="limited")
    assert [Counter(partition for partition, _ in batch) for batch in batches] == [
        {0: 10, 1: 5, 2: 2},
        {0: 10},
        {0: 5},
    ]
    assert stage.offsets(consumer, queue) == stage.positions(queue) == {0: 30, 1: 30, 2: 30}


def test_one_launch_with_transactions(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: one streaming launch with transaction.

    SPYT: YtTransactionalStreamingTest: commit data successfully with transactional streaming;
    pass parent transaction id to provider's advance on commit.
    """
    queue, output = stage.table("queue"), stage.table("output")
    consumer = stage.consumer(queue)
    stage.start("launch", queue=queue, consumer=consumer, output=output, transactional=True)
    stage.put(queue, 0, 30)
    stage.drain("launch")
    stage.stop("launch")
    assert stage.rows(output) == stage.rows(queue)
    assert stage.offsets(consumer, queue) == stage.positions(queue)
    assert sum(stage.offsets(consumer, queue).values()) == 30
    journal = stage.lab.cluster.client.journal
    written = {entry.args["transaction"] for entry in journal("ModifyRows")}
    advanced = {entry.args["transaction"] for entry in journal("AdvanceConsumer")}
    assert written == advanced != set()


def test_several_launches_with_transactions(stage: Stage) -> None:
    """The first is stopped at once, the second while rows are on their way.

    SPYT: YTsaurusStreamingTest: several streaming launches with transaction.
    """
    queue, output = stage.table("queue"), stage.table("output")
    consumer = stage.consumer(queue)
    launch: Row = {"queue": queue, "consumer": consumer, "output": output, "transactional": True}
    stage.start("launch", **launch)
    stage.put(queue, 0, 30)
    stage.stop("launch")
    stage.start("launch", **launch)
    eventually(lambda: bool(stage.rows(output)))
    stage.put(queue, 30, 60)
    stage.stop("launch")
    stage.start("launch", **launch)
    stage.put(queue, 60, 90)
    stage.drain("launch")
    stage.stop("launch")
    assert stage.rows(output) == stage.rows(queue)
    assert stage.offsets(consumer, queue) == stage.positions(queue)
    assert ids(stage.rows(output)) == list(range(90))


def test_a_job_goes_on_without_its_checkpoint_with_transactions(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: continue streaming after removing checkpoints with transaction.

    SPYT: YtStreamingSourceTest: use empty consumer offset in latestOffset.
    """
    queue, output = stage.table("queue"), stage.table("output")
    consumer = stage.consumer(queue)
    for first in (0, 30):
        stage.start("launch", queue=queue, consumer=consumer, output=output, transactional=True)
        stage.put(queue, first, first + 30)
        stage.drain("launch")
        stage.stop("launch")
        stage.lab.yt.remove(f"{stage.folder}/checkpoints", recursive=True)
    assert stage.rows(output) == stage.rows(queue)
    assert stage.offsets(consumer, queue) == stage.positions(queue)
    assert ids(stage.rows(output)) == list(range(60))


def start_on_each(stage: Stage, queues: list[str], *, transactional: bool) -> tuple[str, str]:
    """Start a query for each queue, all with one consumer and one output; return these two."""
    output, consumer = stage.table("output", ORIGIN + COLUMNS), stage.consumer(*queues)
    for number, queue in enumerate(queues):
        stage.start(
            str(number),
            queue=queue,
            consumer=consumer,
            output=output,
            select=[f"'{queue}' as queue", "*"],
            reading={"max_rows_per_partition": "6", "include_service_columns": "true"},
            transactional=transactional,
        )
    return output, consumer


def test_several_queues_flow_into_one_output(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: streaming with several sources-queues: check full data
    delivery.
    """
    sizes = {stage.table(f"queue-{n}"): 10 * rounds for n, rounds in enumerate((1, 3, 5))}
    output, _ = start_on_each(stage, list(sizes), transactional=False)
    for queue, size in sizes.items():
        stage.put(queue, 0, size)
    stage.drain(*stage.running)
    rows = stage.rows(output)
    for queue, size in sizes.items():
        found = [{name: row[name] for name in NAMES} for row in rows if row["queue"] == queue]
        assert found == stage.rows(queue)
        assert len(found) == size


def test_several_queues_flow_into_one_output_with_transactions(stage: Stage) -> None:
    """Stopped while a batch is written: the output has what the consumer says, and no more.

    SPYT: YTsaurusStreamingTest: streaming with several sources-queues with transaction.
    """
    queues = [stage.table(f"queue-{n}") for n in range(3)]
    output, consumer = start_on_each(stage, queues, transactional=True)
    rounds = count(0, 10)

    def feed() -> None:
        first = next(rounds)
        for queue in queues:
            stage.put(queue, first, first + 10)

    def all_are_under_way() -> bool:
        feed()
        return {row["queue"] for row in stage.rows(output)} == set(queues)

    eventually(all_are_under_way)
    faults = stage.lab.cluster.client.faults
    slow = faults.add(method="ModifyRows", action="delay", seconds=1, skip=1)
    feed()
    faults.wait(slow)
    stage.stop(*stage.running)
    rows = stage.rows(output)
    for queue in queues:
        offsets = stage.offsets(consumer, queue)
        assert sum(offsets.values()) > 0
        for tablet in range(TABLETS):
            found = [row[INDEX] for row in rows if (row["queue"], row[TABLET]) == (queue, tablet)]
            assert sorted(found) == list(range(offsets.get(tablet, 0)))


def test_one_queue_flows_into_several_outputs(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: streaming with several sinks and consumers."""
    queue = stage.table("queue")
    outputs = [stage.table(f"output-{n}", ORIGIN[1:] + COLUMNS) for n in range(3)]
    for number, output in enumerate(outputs):
        stage.start(
            str(number),
            queue=queue,
            consumer=stage.consumer(queue, name=f"consumer-{number}"),
            output=output,
            reading={"max_rows_per_partition": "6", "include_service_columns": "true"},
        )
    stage.put(queue, 0, 30)
    stage.drain(*stage.running)
    for output in outputs:
        rows = stage.rows(output)
        assert [{name: row[name] for name in NAMES} for row in rows] == stage.rows(queue)
        assert Counter(row[TABLET] for row in rows) == stage.positions(queue)
        assert len(rows) == 30


def test_an_unmounted_output_fails_the_query_and_loses_nothing(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: exactly-once with transaction when result table is unmounted
    while queue is being written.
    """
    queue, output = stage.table("queue", tablets=1), stage.table("output")
    consumer = stage.consumer(queue)
    arguments: Row = {"queue": queue, "consumer": consumer, "output": output, "transactional": True}
    stage.start("fails", **arguments)
    stage.lab.yt.unmount_table(output, sync=True)
    stage.put(queue, 0, 30, tablets=1)
    with pytest.raises(WorkerError, match="mounted"):
        stage.lab.worker.ask("wait_failure", name="fails", seconds=TIMEOUT)
    stage.stop("fails")
    assert stage.offsets(consumer, queue) == {}
    stage.lab.yt.mount_table(output, sync=True)
    stage.start("goes on", checkpoint=f"{stage.folder}/checkpoints/fails", **arguments)
    stage.drain("goes on")
    assert stage.rows(output) == stage.rows(queue)
    assert stage.offsets(consumer, queue) == stage.positions(queue) == {0: 30}


def test_a_consumer_that_does_not_move_rolls_the_batch_back(stage: Stage) -> None:
    """SPYT: YtTransactionalStreamingTest: rollback data when commit fails with transactional
    streaming; propagate exception from provider's advance on transactional commit.
    """
    queue, output = stage.table("queue"), stage.table("output")
    consumer = stage.consumer(queue)
    arguments: Row = {"queue": queue, "consumer": consumer, "output": output, "transactional": True}
    stage.put(queue, 0, 30)
    faults = stage.lab.cluster.client.faults
    fault = faults.add(method="AdvanceConsumer", action="fail", error=UNAVAILABLE)
    stage.start("fails", **arguments)
    with pytest.raises(WorkerError, match="unable to synchronize"):
        stage.lab.worker.ask("wait_failure", name="fails", seconds=TIMEOUT)
    stage.stop("fails")
    assert faults.get(fault).hits == 1
    assert stage.rows(output) == []
    assert stage.offsets(consumer, queue) == {}
    stage.start("goes on", checkpoint=f"{stage.folder}/checkpoints/fails", **arguments)
    stage.drain("goes on")
    assert stage.rows(output) == stage.rows(queue)
    assert len(stage.rows(output)) == 30


def test_a_consumer_ahead_of_the_checkpoint_counts(stage: Stage) -> None:
    """It stands behind the queue's end when the query starts again: five rows are never read.

    SPYT: YTsaurusStreamingTest: streaming after offsets desynchronization: checkpoints are behind
    on consumer.
    SPYT: YtStreamingSourceTest: fall back to consumer when Spark startOffset is behind consumer;
    return None from getMaxOffset when newMaxOffset is below lastCommittedOffset.
    """
    queue, output = stage.table("queue", tablets=1), stage.table("output", ORIGIN[1:] + COLUMNS)
    consumer = stage.consumer(queue)
    arguments: Row = {"queue": queue, "consumer": consumer, "output": output}
    service = {"include_service_columns": "true"}
    stage.put(queue, 0, 30, tablets=1)
    stage.start("launch", **arguments, reading=service)
    stage.drain("launch")
    stage.stop("launch")
    assert ids(stage.rows(output)) == list(range(30))
    stage.lab.yt.advance_consumer(consumer, queue, 0, None, 35)
    stage.start("launch", **arguments, reading=service)
    stage.put(queue, 30, 60, tablets=1)
    stage.drain("launch")
    rows = stage.rows(output)
    assert ids(rows) == [*range(30), *range(35, 60)]
    assert all(row[INDEX] == row["id"] for row in rows)


@pytest.mark.parametrize("transactional", [False, True])
def test_a_consumer_behind_the_checkpoint_counts_with_transactions_only(
    stage: Stage, transactional: bool
) -> None:
    """SPYT: YtStreamingSourceTest:

    - (transactional mode) use consumer lower bound in latestOffset when Spark checkpoint is ahead
      of consumer
    - (transactional mode) use consumer lower bound in getBatch when Spark start is ahead of
      consumer
    - (non-transactional mode) use Spark startOffset in latestOffset when checkpoint is ahead of
      consumer
    - (non-transactional mode) getBatch uses Spark start when ahead of consumer
    - (non-transactional mode, BUG REPRO) advance from Spark startOffset on second batch when
      consumer is still empty
    """
    queue, output = stage.table("queue", tablets=1), stage.table("output")
    consumer = stage.consumer(queue)
    launch: Row = {
        "queue": queue,
        "consumer": consumer,
        "output": output,
        "transactional": transactional,
        "reading": {"max_rows_per_partition": "15"},
    }
    stage.put(queue, 0, 30, tablets=1)
    stage.start("launch", **launch)
    stage.drain("launch")
    stage.stop("launch")
    assert ids(stage.rows(output)) == list(range(30))
    # Without transactions the consumer stays one batch behind.
    assert stage.offsets(consumer, queue) == {0: 30 if transactional else 15}
    stage.lab.yt.advance_consumer(consumer, queue, 0, None, 10)
    stage.put(queue, 30, 40, tablets=1)
    stage.start("launch", **launch)
    stage.drain("launch")
    again = range(10, 30) if transactional else range(0)
    assert ids(stage.rows(output)) == sorted([*range(40), *again])


UNSIGNED: list[Row] = [
    {"name": "id", "type_v3": {"type_name": "optional", "item": "uint8"}},
    {"name": "uint16", "type_v3": "uint16"},
    {"name": "uint32", "type_v3": "uint32"},
]


def test_small_unsigned_integers_pass_unchanged(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: correctly stream unsigned byte, short and int types."""
    queue, output = stage.table("queue", UNSIGNED, 1), stage.table("output", UNSIGNED, 1)
    values = [(0, 0, 0), (1, 1, 1), (128, 2**15, 2**31), (255, 2**16 - 1, 2**32 - 1)]
    names = [column["name"] for column in UNSIGNED]
    rows = [dict(zip(names, map(YsonUint64, value), strict=True)) for value in values]
    stage.lab.yt.insert_rows(queue, rows)
    typed = {"parsing_type_v3": "true"}
    stage.start("copy", queue=queue, consumer=stage.consumer(queue), output=output, reading=typed)
    stage.drain("copy")
    assert stage.rows(output) == stage.rows(queue) == rows
    assert stage.lab.worker.ask("schema", path=output) == {
        "id": "smallint",
        "uint16": "int",
        "uint32": "bigint",
    }
    assert sorted(stage.lab.worker.ask("read", path=output)) == [list(value) for value in values]


STRUCT: Row = {
    "type_name": "struct",
    "members": [{"name": "a", "type": "int64"}, {"name": "b", "type": "utf8"}],
}
CUSTOM: dict[str, tuple[Any, str]] = {
    "datetime": ("datetime", "datetime"),
    "date32": ("date32", "date32"),
    "datetime64": ("datetime64", "datetime64"),
    "timestamp64": ("timestamp64", "timestamp64"),
    "interval64": ("interval64", "interval64"),
    "id": ("uint64", "uint64"),
    "yson": ({"type_name": "optional", "item": "yson"}, "yson"),
    "list": ({"type_name": "list", "item": "int64"}, "array<bigint>"),
    "struct": (STRUCT, "struct<a:bigint,b:string>"),
}
"""The type of each column on the cluster, and in Spark."""


def test_types_of_yt_alone_pass_unchanged(stage: Stage) -> None:
    """SPYT: YTsaurusStreamingTest: correct streaming with custom YT types."""
    columns: list[Row] = [
        {"name": name, "type_v3": type_v3} for name, (type_v3, _) in CUSTOM.items()
    ]
    queue, output = stage.table("queue", columns), stage.table("output", columns)
    rows = [
        dict.fromkeys(("date32", "datetime64", "timestamp64", "interval64"), n)
        | dict.fromkeys(("datetime", "id"), YsonUint64(n))
        | {"yson": "\x03", "list": [n, n + 1], "struct": {"a": n, "b": f"text {n}"}}
        for n in range(10)
    ]
    stage.lab.yt.insert_rows(queue, rows)
    typed = {"parsing_type_v3": "true"}
    stage.start(
        "copy",
        queue=queue,
        consumer=stage.consumer(queue),
        output=output,
        reading=typed,
        writing={"write_type_v3": "true"},
    )
    stage.drain("copy")
    assert stage.rows(output) == stage.rows(queue)
    assert [sorted(row.items()) for row in stage.rows(output)] == [sorted(r.items()) for r in rows]
    found = stage.lab.worker.ask("schema", path=output, options=typed)
    assert found == {name: spark for name, (_, spark) in CUSTOM.items()}
