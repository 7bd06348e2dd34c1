"""The runtime's own reader, writer and commit, compared with SPYT's."""

from __future__ import annotations

import math
import random
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from weakref import WeakKeyDictionary

import pytest
import yt.type_info as ti
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from packages.minicluster.tests.support import wire_rows
from packages.minicluster.tests.support.wire_rows import Pool, Rowset
from tests.support import all_types
from tests.support.examples import example, settings_of
from tests.support.helpers import ContextOf, StreamOf, adopt, another_process
from tests.support.server_errors import UNAVAILABLE
from ytstream.cluster.client import Client, cluster_name
from ytstream.connector import choose_connector, compile_java, compiled_jar
from ytstream.connector.java import Java, class_name, each, jvm_of
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.provisioning import job_objects
from ytstream.schema.columns import Column
from ytstream.schema.string_values import canonical, is_string
from ytstream.schema.table_schema import table_schema
from ytstream.settings.job_settings import OWN, SPYT, Settings
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait

pytestmark = pytest.mark.spark

ROWS = 400
PIECE = 20_000
"""Rows of random values in one batch, and in one request."""


def test_the_sources_compile_with_this_spark(spark: SparkSession) -> None:
    assert compile_java.unavailable(spark) == ""


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN, SPYT], indirect=True)
def test_a_job_reads_with_the_connector_of_its_configuration(
    stream_of: StreamOf, connector: str
) -> None:
    stream = stream_of("transactional")
    stream.send(100)
    with stream.running() as query:
        wait(drained(stream.context), query)
        leaves = each(query._jsq.streamingQuery().lastExecution().logical().collectLeaves())
        readers = {class_name(leaf.rdd()) for leaf in leaves if leaf.isStreaming()}
    assert readers == {"Ranges" if connector == OWN else "YtQueueRDD"}
    assert stream.is_exact()


@pytest.mark.thorough
def test_both_write_equal_tables_of_random_values(
    context_of: ContextOf, spark: SparkSession, root: str
) -> None:
    for connector in (OWN, SPYT):
        context = _all_types(context_of("transactional"), root, connector)
        adopt(spark, context)
        stream = Stream(context, example("transactional", "map").sample, spark)
        _send_and_compare(context, random.Random(20_260_101), ROWS, stream.drain)


@pytest.mark.journey  # `make test` has the same with few rows, above
@pytest.mark.parametrize("connector", [OWN, SPYT], indirect=True)
@pytest.mark.parametrize("rows", [2_000_000])
def test_many_rows_of_random_values_come_out_as_they_went_in(
    context_of: ContextOf,
    spark: SparkSession,
    cluster: Running,
    root: str,
    connector: str,
    rows: int,
) -> None:
    """The rows go in pieces, which are trimmed once they were compared: memory holds one of them.

    Both connectors get the same rows.
    """
    rng, address = random.Random(20_260_101), cluster.rpc[0]
    context = _all_types(context_of("transactional"), root, connector)
    client, queue, output = context.client, context.settings.queues[0], context.settings.output
    stream = Stream(context, example("transactional", "map").sample, spark)
    adopt(spark, context)
    stream.recover()
    with stream.running() as query:
        _send_and_compare(context, rng, PIECE, lambda: wait(drained(context), query))
        pool = Pool(*(_pulled(address, client, path) for path in (queue, output)))
        for first in range(PIECE, rows, PIECE):
            for path in (queue, output):
                _trim(client, path)
            before = _tablet_rows(client, output)
            sent, expected = pool.rows(rng, range(first, min(first + PIECE, rows)))
            wire_rows.insert(address, queue, pool.names, sent)
            wait(drained(context), query)
            found = wire_rows.pull(address, output, before, _tablet_rows(client, output))
            assert sorted(pool.own(found)) == sorted(expected)


def _all_types(context: JobContext, root: str, connector: str) -> JobContext:
    """Provision a job that passes on its rows, with a column of each type."""
    job = all_types.job("map")
    settings = settings_of(job, f"{root}/{connector}", proxy=context.settings.proxy)
    settings = replace(settings, connector=connector, max_rows_per_partition=PIECE)
    context = replace(context, settings=settings, job=job)
    job_objects.provision(context)
    return context


def _send_and_compare(
    context: JobContext, rng: random.Random, count: int, drain: Callable[[], object]
) -> None:
    """Put rows into the queue; fail unless the output has them."""
    sent = _random_rows(rng, range(count))
    stamped = [{**row, "at": all_types.START, "$tablet_index": 0} for row in sent]
    context.client.insert_rows(context.settings.queues[0], stamped)
    drain()
    found = [*context.client.select_rows(f"* from [{context.settings.output}]")]
    assert _comparable(found) == _comparable(sent)


def _pulled(address: str, client: Client, path: str) -> Rowset:
    ends = _tablet_rows(client, path)
    return wire_rows.pull(address, path, [0] * len(ends), ends)


def _trim(client: Client, path: str) -> None:
    for tablet, count in enumerate(_tablet_rows(client, path)):
        client.trim_rows(path, tablet, count)


def _comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows by id, without service columns."""
    kept = [
        {name: _plain(value) for name, value in row.items() if not name.startswith("$")}
        for row in rows
    ]
    return sorted(kept, key=lambda row: str(row["id"]))


def _plain(value: Any) -> Any:
    """Return a value that equals itself, which NaN does not, with one form for each string."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if is_string(value):
        return canonical(value)
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _random_rows(rng: random.Random, numbers: range) -> list[dict[str, Any]]:
    return [
        {
            "id": f"row-{number:07}",
            **{
                f"c_{name}": None if rng.random() < 0.1 else _value(rng, name, values)
                for name, (_, values) in all_types.VALUES.items()
            },
        }
        for number in numbers
    ]


def _int64(rng: random.Random) -> int:
    return rng.randrange(-(2**63), 2**63)


def _value(rng: random.Random, name: str, values: list[Any]) -> Any:
    """Return a value of a type: one of its extremes, or any."""
    bits = name.lstrip("uint")
    makers: dict[str, Callable[[], Any]] = {
        "double": lambda: rng.choice(
            [math.nan, math.inf, -math.inf, -0.0, 5e-324, rng.uniform(-1e9, 1e9)]
        ),
        "float": lambda: rng.choice([math.nan, math.inf, -0.0, float(rng.randrange(1 << 20)) / 8]),
        "bool": lambda: rng.random() < 0.5,
        "string": lambda: rng.randbytes(rng.choice([0, 1, 7, 8, 9, 300])),
        "utf8": lambda: "".join(rng.choices("aй€😀\0 ", k=rng.choice([0, 1, 8, 100]))),
        "date": lambda: rng.randrange(49_673),
        "datetime": lambda: rng.randrange(4_291_747_200),
        "timestamp": lambda: rng.randrange(4_291_747_200_000_000),
        "interval": lambda: rng.randrange(-(10**15), 10**15),
        "list": lambda: [chr(rng.randrange(97, 123)) * rng.randrange(9) for _ in range(4)],
        "strings": lambda: [rng.randbytes(rng.randrange(12)) for _ in range(rng.randrange(4))],
        "dict": lambda: [[f"k{n}", _int64(rng)] for n in range(rng.randrange(4))],
    }
    if name in makers and rng.random() < 0.7:
        return makers[name]()
    if bits.isdigit() and name.startswith(("int", "uint")) and rng.random() < 0.7:
        low = 0 if name.startswith("u") else -(2 ** (int(bits) - 1))
        return rng.randrange(low, low + 2 ** int(bits))
    return rng.choice(values)


@pytest.mark.parametrize("connector", [OWN], indirect=True)
@pytest.mark.parametrize("action", ["hang_up", "lose_reply"])
def test_rows_whose_reply_is_lost_are_asked_for_again(
    stream_of: StreamOf, cluster: Running, connector: str, action: str
) -> None:
    stream = stream_of("transactional")
    stream.send(300)
    pulled = cluster.client.faults.add(method="PullConsumer", action=action)
    stream.drain()
    assert cluster.client.faults.get(pulled).hits
    assert stream.is_exact()


@pytest.mark.parametrize("connector", [OWN], indirect=True)
@pytest.mark.parametrize("action", ["fail", "lose_reply", "hang_up"])
@pytest.mark.parametrize("method", ["ModifyRows", "AdvanceConsumer"])
def test_a_batch_happens_once_where_one_of_several_requests_fails(
    stream_of: StreamOf, cluster: Running, connector: str, method: str, action: str
) -> None:
    """Others of its kind are under way: none of them is committed without it.

    With a consumer that moved in a part of its partitions the next process would still be exact,
    so the consumer is compared with the head before that.

    SPYT's client of one proxy repeats an AdvanceConsumer whose reply is lost, and the query
    continues.
    """
    stream = stream_of("transactional")
    stream.configure(dyn_batch_size=50)
    stream.send(600)
    stream.recover()
    error = UNAVAILABLE if action == "fail" else None
    output = {"path": stream.settings.output} if method == "ModifyRows" else {}
    broken = cluster.client.faults.add(
        method=method, where=output, skip=1, action=action, error=error
    )
    with suppress(StreamingQueryException, Py4JJavaError):
        stream.drain()
    assert cluster.client.faults.get(broken).hits
    client, settings = stream.client, stream.settings
    head = positions.read_head(settings.ledger, client.select_rows)
    assert head is not None
    found = positions.consumed(client.select_rows, cluster_name(client), settings.consumer)
    assert _read(found) == _read(head.ends)
    another_process(stream).drain()
    assert stream.is_exact()


def test_each_partition_of_a_consumer_moves_to_its_own_row(
    stream_of: StreamOf, spark: SparkSession
) -> None:
    assert compile_java.unavailable(spark) == ""
    stream = stream_of("at_least_once")
    client, settings = stream.client, stream.settings
    (queue,) = settings.queues
    with stream.tablets.transaction() as own:
        own.advance_all(settings.consumer, queue, {0: 2, 1: 5})
    found = positions.consumed(client.select_rows, cluster_name(client), settings.consumer)
    assert found == {queue: {0: 2, 1: 5}}


def _read(ends: Mapping[str, Mapping[int, int]]) -> dict[tuple[str, int], int]:
    """Return where each partition of each queue was read to; not those that were never read."""
    return {(path, n): row for path, rows in ends.items() for n, row in rows.items() if row}


def _tablet_rows(client: Client, path: str) -> list[int]:
    tablets = [*range(int(client.get(f"{path}/@tablet_count")))]
    return [
        int(one["total_row_count"]) for one in client.get_tablet_infos(path, tablets)["tablets"]
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN], indirect=True)
@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_rows_without_a_key_are_spread_over_all_tablets(
    stream_of: StreamOf, connector: str, guarantee: str
) -> None:
    """Where no row names its tablet, all rows of a request go to one, which 100,000 rows fill."""
    stream = stream_of(guarantee)
    path = stream.settings.output
    stream.recover()
    before = _tablet_rows(stream.client, path)
    assert len(before) > 1
    stream.send(600)
    stream.drain()
    found = [
        now - then for then, now in zip(before, _tablet_rows(stream.client, path), strict=True)
    ]
    assert sum(found) > 500  # some are rejected
    assert max(found) - min(found) < 50, found
    assert stream.is_exact()


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_driver_and_tasks_of_a_process_attach_to_a_transaction_once(
    stream_of: StreamOf, cluster: Running, connector: str
) -> None:
    stream = stream_of("transactional")
    since = cluster.client.status()["requests"]
    stream.send(600)
    stream.drain()
    found = cluster.client.journal("AttachTransaction", since=since)
    assert found
    assert {*Counter(entry.args["transaction"] for entry in found).values()} == {1}
    assert len(cluster.client.journal("PullConsumer", since=since)) > len(found)  # by several tasks


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_an_output_with_fewer_tablets_than_before_is_written_by_the_next_query(
    stream_of: StreamOf, connector: str
) -> None:
    """The query remembers how many there were: its write fails, and the next one asks again."""
    stream = stream_of("transactional")
    client: Any = stream.client
    path = stream.settings.output
    stream.send(100)
    stream.drain()
    count = int(client.get(f"{path}/@tablet_count"))
    with suppress(StreamingQueryException, Py4JJavaError), stream.running() as query:
        client.unmount_table(path, sync=True)
        client.reshard_table(path, tablet_count=1, sync=True)
        client.mount_table(path, sync=True)
        stream.send(100)
        wait(drained(stream.context), query)
    assert count > 1
    another_process(stream).drain()
    assert stream.is_exact()


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN], indirect=True)
@pytest.mark.parametrize("guarantee", ["at_least_once", "idempotent"])
def test_a_write_that_fails_is_repeated_without_a_new_start(
    stream_of: StreamOf, cluster: Running, connector: str, guarantee: str
) -> None:
    stream = stream_of(guarantee)
    stream.configure(dyn_batch_size=50)
    stream.send(600)
    stream.recover()
    written = cluster.client.faults.add(
        method="ModifyRows", where={"path": stream.settings.output}, skip=1, action="fail",
        error=UNAVAILABLE,
    )  # fmt: skip
    with stream.running() as query:
        wait(drained(stream.context), query)
    assert cluster.client.faults.get(written).hits
    assert stream.is_exact()


@pytest.fixture
def large(spark: SparkSession, cluster: Running, context_of: ContextOf) -> JobContext:
    """Return a job whose output takes the rows of `_large_rows`."""
    assert compile_java.unavailable(spark) == ""
    context = context_of("at_least_once")
    client: Any = context.client
    attributes = {"dynamic": True, "schema": table_schema(_LARGE)}
    client.create("table", context.settings.output, recursive=True, attributes=attributes)
    client.mount_table(context.settings.output, sync=True)
    cluster.client.journal.clear()
    return context


_LARGE = (Column("id", ti.Int64, required=True, key=True), Column("text", ti.Utf8))


def _large_rows(spark: SparkSession, failing: int | None = None) -> DataFrame:
    """Return rows of two requests (Output.REQUEST_BYTES) in one task; one of them may fail."""
    text = F.expr("repeat('x', 900000)")
    if failing is not None:
        text = F.when(F.col("id") == failing, F.raise_error(F.lit("odd"))).otherwise(text)
    return spark.range(0, 10, 1, 1).withColumn("text", text)


def _write(rows: DataFrame, settings: Settings) -> None:
    java = Java(jvm_of(rows.sparkSession))
    choose_connector.write(rows, settings.output, _LARGE, 0, None, java)


def test_a_task_that_fails_between_two_requests_leaves_no_transaction_open(
    spark: SparkSession, cluster: Running, large: JobContext
) -> None:
    """The client would ping it for as long as the executor lives."""
    sent = cluster.client.faults.add(method="ModifyRows", action="delay", seconds=0)
    ended = cluster.client.faults.add(
        method="AbortTransaction", armed_by=sent, action="delay", seconds=0
    )
    with pytest.raises((Py4JJavaError, PySparkException), match="odd"):
        _write(_large_rows(spark, failing=9), large.settings)
    cluster.client.faults.wait(ended)
    (written,) = {entry.args["transaction"] for entry in cluster.client.journal("ModifyRows")}
    aborted = [entry.args["transaction"] for entry in cluster.client.journal("AbortTransaction")]
    assert aborted == [written]


def test_a_task_that_is_interrupted_stops_and_leaves_no_transaction_open(
    spark: SparkSession, cluster: Running, large: JobContext
) -> None:
    """Also one that opens after that: the cluster's reply comes when the task has ended."""
    held = cluster.client.faults.add(method="StartTransaction", action="hold")
    aborted = cluster.client.faults.add(
        method="AbortTransaction", armed_by=held, action="delay", seconds=0
    )
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(_write_in_group, _large_rows(spark), large.settings)
        cluster.client.faults.wait(held)
        spark.sparkContext.cancelJobGroup(_GROUP)
        assert "cancelled" in str(writing.exception())
    cluster.client.faults.release(held)
    cluster.client.faults.wait(aborted)
    assert not cluster.client.journal("ModifyRows")
    assert not [*large.client.select_rows(f"id from [{large.settings.output}]")]


_GROUP = "interrupted"


def _write_in_group(rows: DataFrame, settings: Settings) -> None:
    """Write as a query of Spark's does, which interrupts its tasks when it ends."""
    rows.sparkSession.sparkContext.setJobGroup(_GROUP, "", interruptOnCancel=True)
    _write(rows, settings)


def test_a_driver_without_the_compiler_runs_on_spyts_path(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of("transactional")
    stream.configure(connector=OWN)
    monkeypatch.setattr(compile_java, "_MADE", WeakKeyDictionary())
    monkeypatch.setattr(compile_java, "_COMPILER", "org.codehaus.janino.Missing")
    said = choose_connector.line(stream.spark, stream.settings)
    assert said.startswith("connector: spyt, since the job's own does not run here: ")
    assert "\n" not in said
    stream.send(100)
    stream.drain()
    assert stream.is_exact()


def test_the_environment_keeps_what_a_start_has_compiled(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compile_java.unavailable(spark) == ""
    monkeypatch.setattr(compile_java, "_MADE", WeakKeyDictionary())
    monkeypatch.setattr(compile_java, "_compiled", Mock(side_effect=OSError("compiled again")))
    assert compile_java.unavailable(spark) == ""
    monkeypatch.setattr(compile_java, "_MADE", WeakKeyDictionary())
    monkeypatch.setenv("YT_OPERATION_ID", "1-2-3-4")
    assert "compiled again" in compile_java.unavailable(spark)


def test_a_jar_that_is_not_whole_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    made = tmp_path / "made.jar"
    with zipfile.ZipFile(made, "w") as jar:
        jar.writestr("ytstream/Queue.class", "classes" * 99)
    kept = compiled_jar.kept(made, "name")
    assert compiled_jar.found("name") == kept != made
    kept.write_bytes(made.read_bytes().replace(b"classes", b"CLASSES", 1))
    assert compiled_jar.found("name") is None
    kept.write_bytes(made.read_bytes()[:-9])
    assert compiled_jar.found("name") is None


def test_sources_that_do_not_compile_are_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with another SPYT, which lacks a class."""
    monkeypatch.setattr(compile_java, "_MADE", WeakKeyDictionary())
    monkeypatch.setattr(
        compile_java,
        "_sources",
        lambda: [("Queue.java", "class Queue { tech.ytsaurus.Gone gone; }")],
    )
    assert "Queue.java" in compile_java.unavailable(spark)


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_a_range_of_several_replies_is_read_whole(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, connector: str
) -> None:
    """A reply has at most 50,000 rows (RangeRows.PIECE)."""
    monkeypatch.setattr(job_objects, "LOCAL_QUEUE_TABLETS", 1)
    stream = stream_of("at_least_once")
    stream.configure(max_rows_per_partition=60_000)
    stream.send(50_001)
    stream.drain()
    assert stream.is_exact()


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_replies_are_bounded_in_bytes_and_nothing_stays_reserved(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch, connector: str
) -> None:
    """A reply has at most 16 MiB (RangeRows.PIECE_BYTES), however few rows that are."""
    monkeypatch.setattr(job_objects, "LOCAL_QUEUE_TABLETS", 1)
    stream = stream_of("at_least_once")
    rows = [{**row, "extra": "x" * (2 << 20)} for row in stream.sample.make(20)]
    stream.publish(rows)
    cluster.client.journal.clear()
    reserved = _ahead(stream.spark)["reserved"]
    with stream.running() as query:
        wait(drained(stream.context), query)
        pulls = len(cluster.client.journal("PullConsumer"))
        assert 3 <= pulls <= 4  # 40 MiB
        assert reserved() == 0
        leaves = each(query._jsq.streamingQuery().lastExecution().logical().collectLeaves())
        (read,) = [leaf.rdd() for leaf in leaves if leaf.isStreaming()]
        # The task ends after a row, which Spark cannot send, and the next reply is under way.
        with pytest.raises(Py4JJavaError, match="not serializable"):
            read.take(1)
        assert len(cluster.client.journal("PullConsumer")) == pulls + 2
        assert reserved() == 0
    assert stream.is_exact()


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_a_task_reads_without_memory_for_rows_ahead(stream_of: StreamOf, connector: str) -> None:
    stream = stream_of("transactional")
    stream.configure(max_rows_per_partition=50)
    stream.send(600)
    ahead = _ahead(stream.spark)
    found = [ahead["reserve"](size << 20) for size in (40, 40, 1)]
    assert found == [40 << 20, 24 << 20, 0]  # AheadMemory.BYTES
    try:
        stream.drain()
    finally:
        ahead["free"](sum(found))
    assert stream.is_exact()
    assert ahead["reserved"]() == 0


def _ahead(spark: SparkSession) -> dict[str, Any]:
    assert compile_java.unavailable(spark) == ""
    java = Java(jvm_of(spark))
    return {name: java[f"ytstream.AheadMemory.{name}"] for name in ("reserve", "free", "reserved")}


def test_all_requests_of_a_task_are_sent_again_where_one_fails(
    spark: SparkSession, cluster: Running, large: JobContext
) -> None:
    failed = cluster.client.faults.add(
        method="ModifyRows", skip=1, action="fail", error=UNAVAILABLE
    )
    _write(_large_rows(spark), large.settings)
    assert cluster.client.faults.get(failed).hits
    found = large.client.select_rows(f"id from [{large.settings.output}]")
    assert sorted(row["id"] for row in found) == [*range(10)]
