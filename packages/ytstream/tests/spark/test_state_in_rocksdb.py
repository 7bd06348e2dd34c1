"""State in RocksDB: what it writes to Cypress, faults while it does, and how a person reads it."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from yt.yson import YsonUint64

from minicluster.client import Entry
from minicluster.testing import Running
from tests.support.helpers import (
    StreamOf,
    adopt,
    another_process,
    at_a_commit,
    head_of,
    refusal_code,
    run_until_it_fails,
)
from tests.support.server_errors import UNAVAILABLE
from ytstream.connector.java import jvm_of
from ytstream.errors.error_codes import ErrorCode
from ytstream.query import pipeline, state_rebuild
from ytstream.recovery import spark_logs, state_check
from ytstream.settings.spark_conf import STATE_STORES
from ytstream.spark import state_metrics
from ytstream.version import version_of
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, settle, wait

pytestmark = pytest.mark.spark

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STORE = "org.apache.spark.sql.execution.streaming.state.StateStore"
WRITES = {"CreateNode", "WriteFile", "MoveNode", "RemoveNode", "CopyNode", "SetNode"}
"""Requests that change Cypress, by their names over RPC."""
OF_A_FILE = 3
"""Of a file that Spark's file system writes: a temporary file is made, written and moved."""
_MIB = 1 << 20


def _of_state(stream: Stream, cluster: Running, since: int) -> list[Entry]:
    """Return the requests about the state of the last start, from a number of requests on."""
    folder = f"{stream.folder}/state/"
    return [e for e in cluster.client.journal(since=since) if folder in str(e.args)]


def _is_change(entry: Entry) -> bool:
    """Say whether a request is about a file of one batch's changes, or its temporary name."""
    return ".changelog" in str(entry.args)


def _partition(stream: Stream, entry: Entry) -> str:
    """Return the state partition that a request is about: 0/1 is partition 1 of operator 0."""
    path = str(entry.args.get("path") or entry.args.get("destination_path"))
    return "/".join(path.removeprefix(f"{stream.folder}/state/").split("/")[:2])


def test_the_checkpoint_names_the_store_of_a_new_job(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "aggregate")
    stream.send(100)
    stream.drain()
    wanted = {one.key: one.value for one in STATE_STORES["rocksdb"]}
    assert _frozen(stream)[PROVIDER] == wanted[PROVIDER]
    store = head_of(stream).store
    assert store is not None
    assert store.memory_bytes > 0


@pytest.mark.thorough
def test_a_batch_writes_one_file_for_each_partition_whatever_changes(
    stream_of: StreamOf, cluster: Running
) -> None:
    """Spark must have a version of each partition for each batch: its file is never left out."""
    stream = stream_of("transactional", "aggregate")
    stream.send(2_000)
    with stream.running() as query:
        wait(drained(stream.context), query)
        settle(query)
        before = head_of(stream)
        since = cluster.client.journal()[-1].n  # `requests` begins again after journal.clear()
        stream.publish([{**stream.sent[0]}])  # one key, so one partition of two
        wait(drained(stream.context), query)
        settle(query)
        assert head_of(stream).batch == before.batch + 1
    # A snapshot (.zip) is not part of a batch: a thread of Spark uploads it by its own clock.
    asked = [e for e in _of_state(stream, cluster, since) if e.method in WRITES and _is_change(e)]
    counts = Counter(_partition(stream, entry) for entry in asked)
    assert counts.keys() == {"0/0", "0/1"}, asked
    assert max(counts.values()) <= OF_A_FILE, asked
    sizes = _bytes_of(stream, before.batch + 2)
    # The end of the file alone, and one row with it: nothing that did not change.
    assert min(sizes.values()) < 60 < max(sizes.values()) < 200, sizes


def _bytes_of(stream: Stream, version: int) -> dict[str, int]:
    """Return the bytes of each partition's file of changes."""
    name = "uncompressed_data_size"
    client: Any = stream.client
    files = client.search(f"{stream.folder}/state", node_type=["file"], attributes=[name])
    return {
        str(path): int(path.attributes[name])
        for path in files
        if _is_changes_of(version, str(path).rpartition("/")[2])
    }


def _is_changes_of(version: int, name: str) -> bool:
    stem, _, kind = name.partition(".")
    return kind == "changelog" and stem.partition("_")[0] == str(version)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("processing", "method"),
    [
        ("aggregate", "WriteFile"),
        pytest.param("aggregate", "MoveNode", marks=pytest.mark.journey),
        pytest.param("deduplicate", "WriteFile", marks=pytest.mark.journey),
        pytest.param("window", "MoveNode", marks=pytest.mark.journey),
        pytest.param("sessions", "WriteFile", marks=pytest.mark.journey),
    ],
)
def test_an_upload_of_state_that_fails_loses_nothing(
    stream_of: StreamOf, cluster: Running, processing: str, method: str
) -> None:
    """One partition's file is there, the other one's is not: the batch runs again from the last."""
    stream = stream_of("transactional", processing)
    stream.send(1_000)
    stream.drain()
    stream.send(1_000)
    stream.recover()
    where = {"path" if method == "WriteFile" else "source_path": f"{stream.folder}/state/0/1/*"}
    fault = cluster.client.faults.add(
        method=method, where=where, times=None, action="fail", error=UNAVAILABLE
    )
    run_until_it_fails(stream)
    assert cluster.client.faults.get(fault).hits
    cluster.client.faults.clear()
    stream.send(500)
    stream.close()
    assert stream.is_exact()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("processing", "gone"), [("deduplicate", 1_000), ("window", 400), ("aggregate", 0)]
)
def test_the_ledger_counts_the_keys_of_a_state_as_spark_does(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    gone: int,
) -> None:
    """Also where a batch fails when its state is written, and runs again. Spark counts as well."""
    counted, removed = list[tuple[int | None, int]](), list[int]()

    def compared(before: int | None, found: Mapping[str, int], stores: int) -> int | None:
        counted.append((rows_after(before, found, stores), found[state_metrics.ROWS]))
        removed.append(found[state_metrics.REMOVED])
        return counted[-1][0]

    rows_after = state_metrics.rows_after
    monkeypatch.setattr(state_metrics, "rows_after", compared)
    monkeypatch.setattr(pipeline, "TRACKING", "spark.ytstream.none")
    stream = stream_of("transactional", processing)
    stream.send(2_000)
    stream.drain()
    stream.send(2_000)
    stream.recover()
    lost = at_a_commit(stream, cluster, "fail")
    run_until_it_fails(stream)
    assert cluster.client.faults.get(lost).hits
    again = another_process(stream)
    with again.running() as query:
        for count in (2_000, 20):
            again.send(count)
            wait(drained(again.context), query)
            settle(query)
    assert len(counted) > 4
    assert all(ours == sparks for ours, sparks in counted), counted
    assert head_of(stream).state_rows == counted[-1][1]
    assert sum(removed) >= gone
    again.close()
    assert stream.is_exact()


@pytest.mark.thorough
def test_spark_counts_the_keys_of_a_deduplication_where_the_ledger_does_not_know_them(
    stream_of: StreamOf,
) -> None:
    stream = stream_of("transactional", "deduplicate")
    stream.send(500)
    stream.drain()
    conf = stream.spark.conf
    known, ids = head_of(stream).state_rows, {row["event_id"] for row in stream.sent}
    assert (conf.get(state_metrics.TRACKING), known) == ("false", len(ids))
    stream.recover()
    state_rebuild._forget_count(stream.context, stream.tablets)  # as `rewind state` does
    stream.publish([{**stream.sent[-1]}])  # a repeat
    stream.drain()
    assert (conf.get(state_metrics.TRACKING), head_of(stream).state_rows) == ("true", known)


@pytest.mark.parametrize(
    "processing",
    ["aggregate", *(pytest.param(k, marks=pytest.mark.journey) for k in ("window", "deduplicate"))],
)
def test_a_start_without_local_files_has_the_same_totals(
    stream_of: StreamOf, processing: str
) -> None:
    """As on another machine: RocksDB's files are read from Cypress again."""
    stream = stream_of("transactional", processing)
    for _ in range(3):
        stream.send(500)
        stream.drain()
        assert _forget_local_files(stream)
    stream.send(200)
    stream.close()
    assert stream.is_exact()


@pytest.mark.thorough
def test_a_job_whose_state_is_in_memory_stays_with_it_after_an_upgrade(
    stream_of: StreamOf,
) -> None:
    """1.0.0 named no store, so Spark's default wrote the state."""
    stream = stream_of("transactional", "aggregate")
    stream.spark._jsparkSession.sessionState().conf().unsetConf(PROVIDER)
    stream.send(500)
    stream.drain()
    for _ in range(2):
        upgraded = another_process(stream)
        upgraded.context = state_check.with_state_store(upgraded.context)  # as `run` does
        adopt(stream.spark, upgraded.context)
        stream.send(500)
        upgraded.drain()
        assert _frozen(upgraded)[PROVIDER].endswith(".HDFSBackedStateStoreProvider")
    by_hand = another_process(stream)
    by_hand.configure(state_store="rocksdb")
    assert refusal_code(by_hand.recover) == ErrorCode.STATE_MISMATCH
    another_process(stream).close()
    assert stream.is_exact()


def _frozen(stream: Stream) -> Any:
    """Return the settings of Spark that the checkpoint fixes."""
    return spark_logs.planned(stream.client, stream.folder, head_of(stream).batch).metadata["conf"]


def _forget_local_files(stream: Stream) -> int:
    """Close all stores of this process, with their files; return how many there were."""
    jvm = jvm_of(stream.spark)
    folder = Path(
        jvm.org.apache.spark.util.Utils.getLocalDir(jvm.org.apache.spark.SparkEnv.get().conf())
    )
    found = [*folder.rglob("StateStoreId(*")]
    _close_stores(stream)
    assert not [*folder.rglob("StateStoreId(*")]
    return len(found)


def _forget_the_shared_memory(stream: Stream) -> None:
    """Close all stores and their cache: the first store of a JVM gives the cache its size."""
    _close_stores(stream)
    manager = jvm_of(stream.spark).org.apache.spark.sql.execution.streaming.state
    manager.RocksDBMemoryManager.resetWriteBufferManagerAndCache()


def _close_stores(stream: Stream) -> None:
    jvm = jvm_of(stream.spark)
    jvm.java.lang.Class.forName(STORE).getMethod("stop", None).invoke(None, None)


@pytest.mark.thorough
@pytest.mark.skipif(version_of("pyspark") < "4", reason="Spark 3.5 has no such source")
def test_the_state_of_one_key_is_read_as_a_table(stream_of: StreamOf) -> None:
    """The recipe of docs/howto.md."""
    stream = stream_of("transactional", "aggregate")
    stream.send(500)
    stream.drain()
    auction = stream.sent[0]["auction"]
    state = stream.spark.read.format("statestore").load(f"yt:/{stream.folder}")
    [row] = state.filter(f"key.auction = {auction}").collect()
    query = f"* from [{stream.settings.output}] where auction = {auction}"
    [wanted] = stream.client.select_rows(query)
    assert row["value"]["count"] == wanted["bids"]


@pytest.mark.thorough
def test_totals_with_a_lifetime_leave_the_state(stream_of: StreamOf) -> None:
    """The way of docs/howto.md: a window among the keys ends with the watermark."""
    stream = stream_of("transactional", "aggregate")

    def transform(events: DataFrame) -> DataFrame:
        daily = events.withWatermark("date_time", "1 day").groupBy(
            "auction", F.window("date_time", "1 day")
        )
        totals = daily.agg(
            F.count(F.lit(1)).alias("bids"),
            F.sum("price").alias("total"),
            F.max("price").alias("highest"),
        )
        return totals.drop("window")

    stream.redeclare(transform=transform)
    rows = stream.sample.make(100, seed=1)
    keys = len({row["auction"] for row in rows})
    for day in range(5):
        moment = YsonUint64(1_704_067_200_000_000 + day * 86_400_000_000)
        stream.publish([{**row, "date_time": moment} for row in rows])
        stream.drain()
    assert keys <= (head_of(stream).state_rows or 0) <= 3 * keys


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("batches", "keys", "limit"),
    [(24, 1_000, 8), pytest.param(200, 30_000, 32, marks=pytest.mark.journey)],
)
def test_a_state_that_is_replaced_does_not_grow(
    stream_of: StreamOf,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
    batches: int,
    keys: int,
    limit: int,
) -> None:
    """Each batch brings new keys, and its watermark removes as many.

    RocksDB keeps what it has read or written until its memory is full. The limit is small, so that
    the first batches fill it: a job's own is 500 MiB, which takes more batches.
    """
    stream = stream_of("transactional", "deduplicate")
    stream.configure(trigger_seconds=0.1)
    # StateStore.stop() holds the lock that maintenance waits for, until it gives up: 300 s.
    maintenance = {"maintenanceInterval": "5s", "maintenanceShutdownTimeout": "5s"}
    more = {**maintenance, "rocksdb.maxMemoryUsageMB": str(limit)}
    conf = stream.spark._jsparkSession.sessionState().conf()
    for key, value in more.items():
        conf.setConfString(f"spark.sql.streaming.stateStore.{key}", value)
    _forget_the_shared_memory(stream)
    request.addfinalizer(lambda: _forget_the_shared_memory(stream))
    inner = stream.context.job.transform
    each = 100  # keys of a row: rows are slow to send, and the state does not know rows

    def transform(events: DataFrame) -> DataFrame:
        many = f"explode(transform(sequence(1, {each}), n -> concat(event_id, '-', n)))"
        return inner(events.selectExpr("* except (event_id)", f"{many} as event_id")).where("false")

    stream.redeclare(transform=transform)
    found: list[dict[str, float]] = []
    with stream.running() as query:
        for number in range(batches):
            stream.publish([*_rows(stream, number, keys // each)])
            wait(drained(stream.context), query)
            settle(query)
            found.append(_sizes(stream))
    quarter = batches // 4
    grown = {}
    for name in found[0]:
        for number in (batches // 10, batches // 2, batches):
            record_property(f"{name}, batch {number}", f"{found[number - 1][name]:.1f}")
        # Files and memory grow until a snapshot or a clean-up, which are not every batch's.
        early = median(one[name] for one in found[quarter : 2 * quarter])
        late = median(one[name] for one in found[3 * quarter :])
        record_property(name, f"{early:.1f}, then {late:.1f}")
        if late > 1.5 * early + 1:
            grown[name] = (early, late)
    assert not grown, found
    assert max(one["RocksDB's memory, MiB"] for one in found) <= 1.25 * limit


def _rows(stream: Stream, number: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield rows whose event times are all after those of the batch before, by the delay."""
    moment = YsonUint64(1_704_067_200_000_000 + number * 11_000_000)
    made = stream.sample.make(count, seed=number + 1)[:count]
    for row in made:
        yield {**row, "event_id": f"{number}-{row['event_id']}", "date_time": moment}


def _sizes(stream: Stream) -> dict[str, float]:
    head = head_of(stream)
    assert head.store is not None
    usage = stream.client.get(f"{stream.settings.checkpoint}/@recursive_resource_usage")
    jvm = jvm_of(stream.spark)
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return {
        "keys": head.state_rows or 0,
        "JVM, resident, MiB": _resident(int(jvm.java.lang.ProcessHandle.current().pid())),
        "RocksDB's memory, MiB": head.store.memory_bytes / _MIB,
        "RocksDB's files, MiB": head.store.file_bytes / _MIB,
        "heap, MiB": (runtime.totalMemory() - runtime.freeMemory()) / _MIB,
        "Cypress, MiB": usage["disk_space"] / _MIB,
        "Cypress, nodes": usage["node_count"],
    }


def _resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / _MIB
