"""SPYT's source and ours, which inherits from it: where a batch ends, what it reads, its commit.

SPYT's suites `YtStreamingSourceTest`, `YtTransactionalStreamingTest` and `YtQueueUtilsTest` check
these classes with mocks. Here a queue and a consumer on the minicluster take their place. Each test
names what it follows, as `SPYT: suite: scenario`. packages/minicluster/tests/spyt/README.md
has the whole list.

A position is the next row to read. SPYT's offsets name the last row that was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import UnsupportedOperationException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from minicluster.testing import Running
from tests.support.server_errors import UNAVAILABLE
from ytstream.cluster.client import cluster_name
from ytstream.connector import choose_connector, compile_java, spyt
from ytstream.connector.java import PYTHON_UTILS, Java, class_name
from ytstream.connector.tablet_transactions import Tablets, Transaction
from ytstream.schema.columns import Column, resolved
from ytstream.schema.table_schema import table_schema
from ytstream.settings.job_settings import OWN, SPYT

pytestmark = pytest.mark.spark

COLUMNS: tuple[Column, ...] = resolved("output", [("number", "int64", False)])
_STREAMING = "tech.ytsaurus.spyt.streaming"
_SPYTS = f"{_STREAMING}.YtStreamingProviderImpl"
"""What ``readStream.format("yt")`` finds."""
_LIMIT = "org.apache.spark.sql.connector.read.streaming.ReadLimit"
_TRANSACTIONAL = ("spark.ytsaurus.streaming.transactional", "spark.yt.streaming.transactional")
"""The ways of naming one setting: the first that is set counts (SPYT, config/package.scala)."""

Positions = Sequence[int]
"""By partition: the next row to read."""


@contextmanager
def transactional(spark: SparkSession, on: bool) -> Iterator[None]:
    """Give the session that mode for a while; an open source asks for it at each call."""
    conf = spark._jsparkSession.sessionState().conf()
    before = {key: conf.getConfString(key, None) for key in _TRANSACTIONAL}
    conf.unsetConf(_TRANSACTIONAL[0])
    conf.setConfString(_TRANSACTIONAL[1], str(on).lower())
    try:
        yield
    finally:
        for key, value in before.items():
            conf.unsetConf(key) if value is None else conf.setConfString(key, value)


@dataclass
class Bench:
    """A queue with its consumer and an output, and the classes that read and write them."""

    client: Any
    spark: SparkSession
    tablets: Tablets
    folder: str
    connector: str

    def __post_init__(self) -> None:
        """Find the paths and the classes."""
        self.java: Java = self.tablets.java
        self.queue, self.consumer, self.output = (
            f"{self.folder}/{name}" for name in ("queue", "consumer", "output")
        )

    def create(self, name: str, partitions: int) -> None:
        """Make and mount a table that the source reads, or one that the sink writes."""
        schema = table_schema(COLUMNS).to_yson_type()
        attributes = {"dynamic": True, "schema": schema, "tablet_count": partitions}
        self.client.create("table", f"{self.folder}/{name}", recursive=True, attributes=attributes)
        self.client.mount_table(f"{self.folder}/{name}", sync=True)

    def fill(self, rows: Positions) -> None:
        """Make the queue, with so many rows in each partition."""
        self.create("queue", len(rows))
        self.client.insert_rows(
            self.queue,
            [
                {"number": number, "$tablet_index": partition}
                for partition, count in enumerate(rows)
                for number in range(count)
            ],
        )

    def register(self, positions: Positions = ()) -> None:
        """Make the consumer, at these positions."""
        self.client.create("queue_consumer", self.consumer)
        self.client.mount_table(self.consumer, sync=True)
        self.client.register_queue_consumer(self.queue, self.consumer, vital=False)
        self.move(positions)

    def move(self, positions: Positions) -> None:
        """Move the consumer, back as well."""
        for partition, row in enumerate(positions):
            self.client.advance_queue_consumer(self.consumer, self.queue, partition, None, row)

    def moved_to(self) -> dict[int, int]:
        """Return where the consumer is, in the partitions that it was moved in."""
        rows = self.client.select_rows(f"* from [{self.consumer}]")
        return {int(row["partition_index"]): int(row["offset"]) for row in rows}

    def prepare(self) -> None:
        """Make all three: ten rows, a consumer that was never moved, an empty output."""
        self.fill([10])
        self.register()
        self.create("output", 1)

    def written(self) -> list[int]:
        """Return the numbers in the output."""
        return sorted(row["number"] for row in self.client.select_rows(f"* from [{self.output}]"))

    def source(self, provider: Any = None, **options: str) -> Source:
        """Open the source of the connector, as Spark does when a query starts.

        A provider replaces what tells SPYT's source of offsets.
        """
        if self.connector == OWN:
            assert compile_java.unavailable(self.spark) == ""
        provider_name = compile_java.SOURCE if self.connector == OWN else _SPYTS
        given = {"path": self.queue, "consumer_path": self.consumer, **options}
        context = self.spark._jsparkSession.sqlContext()
        scala = self.java[f"{PYTHON_UTILS}.toScalaMap"](given)
        nothing = self.java.option(None)
        made = self.java[provider_name]().createSource(context, "", nothing, "yt", scala)
        if provider is not None:
            made = self.java[f"{_STREAMING}.YtStreamingSource"](
                context, self.consumer, self.queue, made.schema(), scala, provider, made.yt()
            )
        return Source(self, made)

    def write(self, numbers: Sequence[int]) -> None:
        """Write a batch with the sink of the connector, in the transaction of this thread."""
        schema = "number bigint"
        rows: DataFrame = self.spark.createDataFrame([(number,) for number in numbers], schema)
        if self.connector == SPYT:
            spyt.add_batch(spyt.sink(self.spark, self.java, {"path": self.output}), 0, rows)
        else:
            settings = self.tablets.settings
            choose_connector.write(
                rows, self.output, COLUMNS, 1, settings.dyn_batch_size, self.java
            )

    def offset(self, positions: Positions) -> Any:
        """Return an offset as Spark reads it from its log after a restart."""
        text = {
            "cluster": cluster_name(self.client),
            "path": self.queue,
            "partitions": {str(number): row - 1 for number, row in enumerate(positions)},
        }
        version = tuple(map(int, self.spark.version.split(".")[:2]))
        folder = "streaming" if version < (4, 1) else "streaming.runtime"
        name = f"org.apache.spark.sql.execution.{folder}.SerializedOffset"
        return self.java[f"{_STREAMING}.YtQueueOffset.apply"](self.java[name](json.dumps(text)))


@dataclass
class Source:
    """A source in the JVM."""

    bench: Bench
    jvm: Any

    def latest(self, start: Positions | None, limit: int | None) -> Any:
        """Return the offset that the next batch ends at; None without one."""
        limits = self.bench.java[_LIMIT]
        most = limits.allAvailable() if limit is None else limits.maxRows(limit)
        return self.jvm.latestOffset(None if start is None else self.bench.offset(start), most)

    def plan(self, start: Positions | None, end: Any) -> dict[int, tuple[int, int]] | None:
        """Return what a batch reads: first row and row after the last, by partition.

        None for a batch without rows. ``end`` is an offset of the JVM.
        """
        begin = self.bench.java.option(None if start is None else self.bench.offset(start))
        rdd = self.jvm.getBatch(begin, end).queryExecution().logical().rdd()
        if rdd.name() == "empty":
            return None
        assert class_name(rdd) == ("Ranges" if self.bench.connector == OWN else "YtQueueRDD")
        return spyt.ranges(str(rdd.toJavaRDD().partitions().toString()))


def positions_of(offset: Any) -> list[int] | None:
    """Return the positions of an offset of the JVM."""
    if offset is None:
        return None
    partitions = json.loads(offset.json())["partitions"]
    return [partitions[str(number)] + 1 for number in range(len(partitions))]


BenchOf = Callable[[str], Bench]
"""Makes a bench with a connector."""


@pytest.fixture
def bench_of(
    client: Any, cluster: Running, spark: SparkSession, tablets: Tablets, root: str
) -> Iterator[BenchOf]:
    """A folder of its own, with nothing in it; no fault outlives the test."""
    yield lambda connector: Bench(client, spark, tablets, root, connector)
    cluster.client.faults.clear()


@pytest.fixture(params=[SPYT, OWN])
def bench(bench_of: BenchOf, request: pytest.FixtureRequest) -> Bench:
    """A bench with each of the connectors."""
    return bench_of(request.param)


@dataclass(frozen=True)
class Plan:
    """The next batch of a query: what there is, and what SPYT plans."""

    rows: Positions
    """Rows in each partition of the queue."""
    end: Positions | None
    """Where the batch ends; None if there is no batch."""
    reads: dict[int, tuple[int, int]] | None
    """What it reads, by partition."""
    consumer: Positions = ()
    """Where the consumer is when the query starts, and to where another moves it then."""
    moved: Positions = ()
    start: Positions | None = None
    """Where Spark's log says that the last batch ended."""
    limit: int | None = 10
    is_transactional: bool = False


PLANS = {
    # SPYT: YtStreamingSourceTest: use provider for current offset in latestOffset if start is not
    # defined
    "the first batch begins at the consumer": Plan(
        rows=[100], consumer=[51], end=[61], reads={0: (51, 61)}
    ),
    # SPYT: YtStreamingSourceTest: return full maxOffset from latestOffset when no
    # max_rows_per_partition is set
    "without a limit a batch reads all": Plan(
        rows=[40, 60], consumer=[6, 8], limit=None, end=[40, 60], reads={0: (6, 40), 1: (8, 60)}
    ),
    # SPYT: YtStreamingSourceTest: clamp each partition independently in latestOffset for
    # multi-partition queues; build one YtQueueRange per partition in getBatch for multi-partition
    # queues; deserialize SerializedOffset end in getBatch and build correct ranges
    "each partition has the limit": Plan(
        rows=[100, 60, 5],
        consumer=[51, 55, 0],
        end=[61, 60, 5],
        reads={0: (51, 61), 1: (55, 60), 2: (0, 5)},
    ),
    # SPYT: YtStreamingSourceTest: (non-transactional mode) use Spark startOffset in latestOffset
    # when checkpoint is ahead of consumer; getBatch uses Spark start when ahead of consumer
    "the log counts where it is ahead of the consumer": Plan(
        rows=[100], consumer=[51], start=[81], end=[91], reads={0: (81, 91)}
    ),
    # SPYT: YtStreamingSourceTest: (non-transactional mode, BUG REPRO) advance from Spark
    # startOffset on second batch when consumer is still empty
    "the log counts where the consumer has no row": Plan(
        rows=[100], start=[50], limit=50, end=[100], reads={0: (50, 100)}
    ),
    # SPYT: YtStreamingSourceTest: (non-transactional mode) fall back to consumer when Spark
    # startOffset is behind consumer
    "the consumer counts where it is ahead of the log": Plan(
        rows=[100], consumer=[51], start=[21], end=[61], reads={0: (51, 61)}
    ),
    # SPYT: YtStreamingSourceTest: (transactional mode) use consumer lower bound in latestOffset
    # when Spark checkpoint is ahead of consumer; in getBatch when Spark start is ahead of consumer
    "with transactions the consumer counts as it is now": Plan(
        rows=[100],
        consumer=[31],
        moved=[51],
        start=[81],
        end=[61],
        reads={0: (51, 61)},
        is_transactional=True,
    ),
    # SPYT: YtStreamingSourceTest: (transactional mode) use empty consumer offset in latestOffset
    # (missing partitions read from -1 via maxOffset keys)
    "with transactions a consumer without a row counts": Plan(
        rows=[100], start=[30], end=[10], reads={0: (0, 10)}, is_transactional=True
    ),
    # SPYT: YtTransactionalStreamingTest: still compute correct end offset when
    # max_rows_per_partition is set (transactional, no regression)
    "with transactions the limit counts from the consumer": Plan(
        rows=[51], consumer=[6], end=[16], reads={0: (6, 16)}, is_transactional=True
    ),
    # SPYT: YtTransactionalStreamingTest: not move lastCommittedOffset backwards when YT consumer
    # returns a stale or empty value
    "with transactions a consumer that is moved back does not count": Plan(
        rows=[51],
        consumer=[26],
        moved=[0],
        end=[36],
        reads={0: (26, 36)},
        is_transactional=True,
    ),
    # SPYT: YtStreamingSourceTest: return None from getMaxOffset when newMaxOffset is below
    # lastCommittedOffset
    "a consumer behind the end of the queue means no batch": Plan(
        rows=[51], consumer=[81], end=None, reads=None
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_batch_is_planned_from_queue_consumer_and_log(bench: Bench, name: str) -> None:
    plan = PLANS[name]
    bench.fill(plan.rows)
    bench.register(plan.consumer)
    with transactional(bench.spark, plan.is_transactional):
        source = bench.source()
        bench.move(plan.moved)
        end = source.latest(plan.start, plan.limit)
        assert positions_of(end) == (plan.end and [*plan.end])
        if end is not None:
            assert source.plan(plan.start, end) == plan.reads
            assert source.plan(plan.start, bench.offset(plan.end or ())) == plan.reads


def test_a_batch_that_the_consumer_has_passed_reads_nothing(bench: Bench) -> None:
    """SPYT: YtStreamingSourceTest: fall back to empty RDD in getBatch when consumer offset is past
    batch end.
    """
    bench.fill([100])
    bench.register([31])
    with transactional(bench.spark, on=False):
        source = bench.source()
        bench.move([71])
        source.latest(None, 10)
        assert source.plan([41], bench.offset([61])) is None


def test_a_batch_that_ends_where_it_begins_reads_nothing(bench: Bench) -> None:
    """SPYT: YtStreamingSourceTest: return empty RDD from getBatch when start equals end."""
    bench.fill([100])
    bench.register([1])
    assert bench.source().plan([31], bench.offset([31])) is None


def test_with_transactions_each_batch_asks_where_the_consumer_is(bench: Bench) -> None:
    """Without a limit as well.

    SPYT: YtTransactionalStreamingTest: refresh lastCommittedOffset on every latestOffset call in
    transactional mode even without max_rows_per_partition.
    """
    bench.fill([51])
    bench.register()
    with transactional(bench.spark, on=True):
        source = bench.source()
        for position in (0, 20, 40):
            bench.move([position])
            end = source.latest(None, None)
            assert positions_of(end) == [51]
            assert source.plan(None, end) == {0: (position, 51)}


def test_a_queue_that_becomes_shorter_keeps_its_end(bench: Bench) -> None:
    """As one that was made again.

    SPYT: YtStreamingSourceTest: keep cached maxOffset when newMaxOffset is below previously cached
    value.
    """
    bench.fill([50])
    bench.register()
    with transactional(bench.spark, on=False):
        source = bench.source()
        assert positions_of(source.latest(None, None)) == [50]
        bench.client.remove(bench.queue)
        bench.fill([30])
        assert positions_of(source.latest(None, None)) == [50]


class Outage:
    """Where the queue ends, as a Python object that SPYT asks: at the given offset, then unknown.

    SPYT's own object asks an unavailable cluster for 155 seconds (YtQueueOffset.getMaxOffset).
    """

    def __init__(self, bench: Bench, ends: Sequence[Any]) -> None:
        self.bench, self.ends = bench, [*ends]

    def getMaxOffset(self, _cluster: str, _queue: str, _yt: Any) -> Any:  # noqa: N802
        """Return the next of the offsets, then a failure."""
        java = self.bench.java
        if self.ends:
            return java["scala.util.Success"](self.ends.pop(0))
        return java["scala.util.Failure"](java["java.lang.IllegalStateException"]("an outage"))

    def getCurrentOffset(self, _cluster: str, _consumer: str, _queue: str, _yt: Any) -> Any:  # noqa: N802
        """Return that the consumer is at the first row."""
        return self.bench.offset([0])

    class Java:
        """What py4j reads."""

        implements = [f"{_STREAMING}.YtQueueOffsetProvider"]  # noqa: RUF012


@pytest.mark.parametrize("ends", [[], [[50]]])
def test_an_outage_leaves_the_end_that_was_known(bench_of: BenchOf, ends: list[Positions]) -> None:
    """SPYT: YtStreamingSourceTest: return cached offset on provider failure; return null from
    latestOffset when getMaxOffset fails on first call.
    """
    bench = bench_of(SPYT)
    bench.fill([1])
    bench.register()
    ensure_callback_server_started(bench.spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    provider = Outage(bench, [bench.offset(end) for end in ends])
    source = bench.source(provider=provider)
    with transactional(bench.spark, on=False):
        for _ in range(2):
            assert positions_of(source.latest(None, None)) == (ends[0] if ends else None)


def test_only_a_limit_of_the_options_limits_a_batch(bench: Bench) -> None:
    """SPYT: YtStreamingSourceTest: return composite limit when max_rows_per_partition is set,
    allAvailable otherwise.
    """
    bench.fill([1])
    bench.register()
    limited = bench.source(max_rows_per_partition="7").jvm.getDefaultReadLimit()
    assert [one.maxRows() for one in limited.getReadLimits()] == [7]
    assert class_name(bench.source().jvm.getDefaultReadLimit()) == "ReadAllAvailable"


def test_spark_may_not_ask_without_a_limit(bench: Bench) -> None:
    """SPYT: YtStreamingSourceTest: throw on getOffset (only latestOffset is supported)."""
    bench.fill([1])
    bench.register()
    with pytest.raises(UnsupportedOperationException, match="latestOffset"):
        bench.source().jvm.getOffset()


def test_without_transactions_a_commit_moves_the_consumer(bench: Bench) -> None:
    """Ours leaves that to the runtime, which moves it together with the ledger's head.

    SPYT: YtStreamingSourceTest: call provider's advance on commit with last fetched offset.
    """
    bench.fill([100, 100])
    bench.register([51, 1])
    with transactional(bench.spark, on=False):
        bench.source().jvm.commit(bench.offset([61, 0]))
        assert bench.moved_to() == {0: 51, 1: 1}  # one partition would go back
        bench.source().jvm.commit(bench.offset([61, 11]))
    assert bench.moved_to() == ({0: 61, 1: 11} if bench.connector == SPYT else {0: 51, 1: 1})


@pytest.mark.parametrize("position", [0, 11])
def test_a_commit_that_is_not_between_consumer_and_end_moves_nothing(
    bench: Bench, position: int
) -> None:
    """SPYT: YtQueueUtilsTest: not advance consumer on commit if new offset is less than last
    committed; not advance consumer on commit if new offset is more than max offset.
    """
    bench.fill([6])
    bench.register([1])
    with transactional(bench.spark, on=True):
        source = bench.source()
        source.latest(None, None)
        with (
            bench.tablets.transaction() as transaction,
            spyt.inside(bench.java, transaction.id, transaction.proxy),
        ):
            source.jvm.commit(bench.offset([position]))
    assert bench.moved_to() == {0: 1}


def test_with_transactions_nothing_moves_outside_of_one(bench: Bench) -> None:
    """SPYT: YtStreamingSourceTest: skip commit when transactional is enabled and no transaction
    context is set.
    """
    bench.fill([20])
    bench.register([1])
    with transactional(bench.spark, on=True):
        bench.source().jvm.commit(bench.offset([11]))
    assert bench.moved_to() == {0: 1}


def run_batch(bench: Bench, source: Source, transaction: Transaction) -> None:
    """Write ten rows and move the consumer behind ten, in that transaction."""
    with spyt.inside(bench.java, transaction.id, transaction.proxy):
        bench.write(range(10))
        source.jvm.commit(bench.offset([10]))


def test_rows_and_consumer_change_when_the_transaction_commits(bench: Bench) -> None:
    """SPYT: YtTransactionalStreamingTest: commit data successfully with transactional streaming;
    pass parent transaction id to provider's advance on commit.
    """
    bench.prepare()
    with transactional(bench.spark, on=True), bench.tablets.transaction() as transaction:
        run_batch(bench, bench.source(), transaction)
        assert (bench.written(), bench.moved_to()) == ([], {})
    assert (bench.written(), bench.moved_to()) == ([*range(10)], {0: 10})


def test_a_consumer_that_does_not_move_takes_the_rows_with_it(
    bench: Bench, cluster: Running
) -> None:
    """SPYT: YtTransactionalStreamingTest: rollback data when commit fails with transactional
    streaming; propagate exception from provider's advance on transactional commit.
    """
    bench.prepare()
    cluster.client.faults.add(method="AdvanceConsumer", action="fail", error=UNAVAILABLE)
    with (
        transactional(bench.spark, on=True),
        pytest.raises(Py4JJavaError, match="unable to synchronize"),
        bench.tablets.transaction() as transaction,
    ):
        run_batch(bench, bench.source(), transaction)
    assert (bench.written(), bench.moved_to()) == ([], {})


def test_a_transaction_that_is_over_writes_and_moves_nothing(bench: Bench) -> None:
    """SPYT: YtQueueUtilsTest: throw an error when the transaction has expired."""
    bench.prepare()
    with transactional(bench.spark, on=True):
        source = bench.source()
        with bench.tablets.transaction() as transaction:
            pass
        with spyt.inside(bench.java, transaction.id, transaction.proxy):
            for step in (
                lambda: bench.write([1]),
                lambda: source.jvm.commit(bench.offset([10])),
            ):
                with pytest.raises(Py4JJavaError, match=r"transaction \S+ is not found"):
                    step()
    assert (bench.written(), bench.moved_to()) == ([], {})
