"""The reference table: rows that are read or refused, and when they are read again."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame
from yt.yson import to_yson_type

from minicluster.testing import Running
from tests.support.helpers import StreamOf, refusal
from tests.support.job_thread import supervised
from tests.support.server_errors import denied
from ytstream import Column
from ytstream.cluster.client import connect
from ytstream.provisioning import job_objects
from ytstream.query import reference_table
from ytstream.query.batch import Batch
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner
from ytstream.schema.columns import resolved
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark


@pytest.fixture
def stream(stream_of: StreamOf) -> Stream:
    """Provision a join."""
    return stream_of("transactional", "join")


def _path(stream: Stream) -> str:
    return str(stream.settings.reference)


def _read(
    stream: Stream, columns: Sequence[Column] | None = None, most_rows: int = 100_000
) -> DataFrame:
    return reference_table.read(
        stream.spark,
        stream.client,
        _path(stream),
        columns or stream.context.job.reference_columns,
        most_rows,
    )


def _runner(stream: Stream) -> QueryRunner:
    return QueryRunner(stream.context, stream.spark, stream.tablets, StopSignal())


def test_all_rows_are_read_with_their_types(stream: Stream) -> None:
    known = {row["auction"]: row for row in stream.sample.reference}
    found = _read(stream)
    assert {row.auction: row.category for row in found.collect()} == {
        auction: row["category"] for auction, row in known.items()
    }
    assert found.dtypes == [("auction", "bigint"), ("category", "string"), ("seller", "bigint")]


def test_the_rows_are_computed_once_and_freed(stream: Stream) -> None:
    """A frame of Python's rows goes through Python workers each time that it is computed."""
    runner = _runner(stream)
    found = runner.read_reference()
    assert found is not None
    plan = found.filter("auction > 0")._jdf.queryExecution().executedPlan().toString()
    assert "InMemoryTableScan" in plan
    assert found.storageLevel.useMemory
    newer = runner.read_reference()
    assert newer is not None
    assert not found.storageLevel.useMemory
    assert newer.storageLevel.useMemory


@pytest.mark.thorough
def test_a_static_table_is_read_as_it_is(stream: Stream) -> None:
    path, client = f"{stream.settings.ledger}-static", cast(Any, stream.client)
    columns = [
        Column("code", "utf8", key=True), Column("at", "timestamp"), Column("rank", "uint32"),
    ]  # fmt: skip
    types = {"code": "utf8", "other": "any", "rank": "uint32", "at": "timestamp"}
    schema = [{"name": name, "type": kind} for name, kind in types.items()]
    client.create("table", path, attributes={"schema": schema})
    rows: list[dict[str, Any]] = [
        {"code": "ы", "other": {"a": [1]}, "rank": 4_000_000_000, "at": 1_700_000_000_000_000},
        {"code": "b", "other": None, "rank": None, "at": None},
    ]
    client.write_table(path, rows)
    stream.configure(reference=path)
    found = _read(stream, resolved("REFERENCE", columns), most_rows=2)
    assert found.dtypes == [("code", "string"), ("at", "timestamp"), ("rank", "bigint")]
    read = found.selectExpr("code", "unix_micros(at)", "rank").collect()
    assert {(*row,) for row in read} == {(row["code"], row["at"], row["rank"]) for row in rows}
    text = refusal(lambda: _read(stream, resolved("REFERENCE", columns), most_rows=1))
    assert f"the reference {path} has more than 1 rows" in text
    client.write_table(f"<append=%true>{path}", rows[:1])
    text = refusal(lambda: _read(stream, resolved("REFERENCE", columns)))
    assert "has 1 keys (code) more than once, for example ('ы')" in text


@pytest.mark.thorough
def test_a_job_starts_with_a_static_reference(stream: Stream) -> None:
    path, client = f"{stream.settings.ledger}-static", cast(Any, stream.client)
    columns = [dict(column) for column in client.get(f"{_path(stream)}/@schema")]
    for column in columns:
        column.pop("sort_order", None)
    client.create("table", path, attributes={"schema": columns})
    client.write_table(path, stream.sample.reference)
    stream.configure(reference=path, references={"also": path})
    assert [*job_objects.findings(stream.context)] == []
    stream.send(50)
    with supervised(stream) as wait:
        wait(drained(stream.context))
    assert stream.is_exact()


def test_a_row_without_a_key_is_said_and_does_no_harm(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    stream.client.insert_rows(_path(stream), [{"auction": None, "category": "no auction's"}])
    with caplog.at_level("INFO", "job"):
        assert _read(stream).count() == len(stream.sample.reference) + 1
    assert "(1 of them have no key" in caplog.text


def test_a_key_that_repeats_is_refused(stream: Stream) -> None:
    columns = [
        replace(column, key=column.name == "category")
        for column in stream.context.job.reference_columns
    ]
    assert "7 keys (category) more than once" in refusal(lambda: _read(stream, columns))


def test_strings_of_any_bytes_are_read_as_key_and_value(stream: Stream) -> None:
    path, client = f"{stream.settings.ledger}-reference", stream.client
    columns = [Column("payload", "string", key=True), Column("category", "string")]
    schema = [{"name": "payload", "type": "string", "sort_order": "ascending"}]
    schema.append({"name": "category", "type": "string"})
    client.create("table", path, attributes={"dynamic": True, "schema": schema})
    client.mount_table(path, sync=True)
    rows = {b"": b"", b"\x00\xff\x1f\x8b": b"\xff\xfe", "ы".encode(): b"books"}
    client.insert_rows(path, [{"payload": key, "category": rows[key]} for key in rows])
    stream.configure(reference=path)
    found = _read(stream, resolved("REFERENCE", columns))
    assert found.dtypes == [("payload", "string"), ("category", "string")]
    both = (found[name].cast("binary").alias(name) for name in found.columns)
    read = {bytes(row.payload): bytes(row.category) for row in found.select(*both).collect()}
    assert read == rows


def test_a_table_that_is_too_large_is_refused(stream: Stream) -> None:
    rows = len(stream.sample.reference)
    assert _read(stream, most_rows=rows).count() == rows
    text = refusal(lambda: _read(stream, most_rows=rows - 1))
    assert f"more than {rows - 1} rows" in text
    assert "raise reference_rows in job.py" in text


def test_a_type_that_is_not_read_is_refused_by_name(stream: Stream) -> None:
    columns = resolved("REFERENCE", [("auction", "int64", False), ("extra", "any", False)])
    assert "extra (any)" in refusal(lambda: _read(stream, columns))


def test_a_reference_of_another_schema_is_refused(stream: Stream) -> None:
    path = _path(stream)
    stream.client.remove(path)
    key = {"name": "auction", "type": "utf8", "sort_order": "ascending"}
    schema = to_yson_type(
        [key, {"name": "other", "type": "int64"}], attributes={"unique_keys": True}
    )
    stream.client.create("table", path, attributes={"dynamic": True, "schema": schema})
    stream.client.mount_table(path, sync=True)
    text = refusal(lambda: job_objects.require(stream.context))
    assert f"reference {path}: column auction" in text
    assert "column category: the table lacks it" in text
    assert "correct REFERENCE in tables.py" in text


def test_a_reference_that_cannot_be_read_again_does_not_end_the_job(
    stream: Stream, cluster: Running, caplog: pytest.LogCaptureFixture
) -> None:
    runner = _runner(stream)
    runner.read_reference()
    cluster.client.faults.add(
        method="select_rows",
        where={"query": f"*{_path(stream)}*"},
        times=None,
        action="fail",
        error=denied("read", _path(stream)),
    )
    with caplog.at_level("INFO", "job"):
        found = runner.read_reference()
    assert found is not None
    assert found.count() == len(stream.sample.reference)
    assert "continuing with the reference table as last read: Access denied" in caplog.text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("column", "row"),
    [
        ({"name": "auction", "type": "double"}, {"auction": 1.5, "category": "x", "seller": 2}),
        ({"name": "seller", "type": "double"}, {"auction": 1, "category": "x", "seller": 7.9}),
        ({"name": "seller", "type": "utf8"}, {"auction": 1, "category": "x", "seller": "seven"}),
    ],
)
def test_a_reference_recreated_with_other_types_keeps_the_former_one(
    stream: Stream, caplog: pytest.LogCaptureFixture, column: dict[str, str], row: dict[str, Any]
) -> None:
    runner = _runner(stream)
    runner.read_reference()
    path, client = _path(stream), stream.client
    schema = [dict(found) for found in client.get(f"{path}/@schema")]
    for found in schema:
        if found["name"] == column["name"]:
            found.pop("type_v3", None)
            found.update(column, required=False)
    client.remove(path)
    schema = to_yson_type(schema, attributes={"unique_keys": True})
    client.create("table", path, attributes={"dynamic": True, "schema": schema})
    client.mount_table(path, sync=True)
    client.insert_rows(path, [row])
    kept = runner.read_reference()
    assert kept is not None
    assert kept.count() == len(stream.sample.reference)
    assert "continuing with the reference table as last read: the reference" in caplog.text
    assert f"column {column['name']}: the table has {column['type']}" in caplog.text


def test_a_reference_is_recreated_while_it_is_read(stream: Stream, cluster: Running) -> None:
    """Its rows may be those of the table in between: here it had texts, and has numbers again."""
    path, client = _path(stream), stream.client
    attributes = {"dynamic": True, "schema": client.get(f"{path}/@schema")}
    held = cluster.client.faults.add(
        method="select_rows", where={"query": f"*{path}*"}, action="hold"
    )
    said: list[str] = []
    reading = threading.Thread(target=lambda: said.append(refusal(lambda: _read(stream))))
    reading.start()
    cluster.client.faults.wait(held)
    another: Any = connect(stream.settings)
    another.remove(path)
    another.create("table", path, attributes=attributes)
    another.mount_table(path, sync=True)
    cluster.client.faults.clear()
    reading.join()
    assert "was recreated while it was read" in said[0]


def test_a_reference_that_is_resharded_is_read(stream: Stream) -> None:
    path, client = _path(stream), cast(Any, stream.client)
    client.unmount_table(path, sync=True)
    client.reshard_table(path, [[], [1003]], sync=True)
    client.mount_table(path, sync=True)
    assert _read(stream).count() == len(stream.sample.reference)


@pytest.mark.thorough
def test_a_change_is_seen_after_the_refresh_and_not_before(stream: Stream) -> None:
    # Due before its first batch: each query finishes one all the same.
    stream.configure(reference_refresh=0.0)
    stream.send(100)
    runner = _runner(stream)
    is_drained = drained(stream.context)

    def refresh_until_drained() -> None:
        for _ in range(5):
            runner.run()  # each query of this runner ends by itself
            if is_drained():
                return
        pytest.fail("no query has finished a batch")

    refresh_until_drained()
    assert stream.is_exact()
    changed: list[dict[str, Any]] = [
        {"auction": row["auction"], "category": "changed"} for row in stream.sample.reference
    ]
    stream.client.insert_rows(_path(stream), changed, update=True)
    before = stream.found()
    stream.send(100)
    refresh_until_drained()
    new = stream.found() - before
    assert new.total() == 100
    assert {row[4] for row in new} <= {"changed", None}


@pytest.mark.thorough
def test_a_refresh_leaves_no_thread_and_no_batch_behind(stream: Stream) -> None:
    """py4j would keep both for each query, and a process may start thousands of them."""
    stream.configure(reference_refresh=0.0)
    runner = _runner(stream)

    def refresh() -> None:
        stream.send(10)
        runner.run()
        gc.collect()

    refresh()  # makes the threads that all queries share
    threads, batches = {*threading.enumerate()}, _batches()
    for _ in range(3):
        refresh()
    assert _batches() <= batches
    more = {*threading.enumerate()} - threads
    for thread in more:  # it ends when Java's end of its connection is closed
        thread.join(5)
    alive = [thread for thread in more if thread.is_alive()]
    assert len(alive) <= 1  # that of Java's finalizer, which says what it has collected
    assert stream.is_exact()


def _batches() -> int:
    return sum(type(found) is Batch for found in gc.get_objects())
