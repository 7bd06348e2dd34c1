"""Memory that comes back: blocks of rows, bounded versions, times that are over.

Sources name files of the server under `yt/yt`, and its tests under `yt/yt/tests`. What is stored
how, and when memory goes back to the system, is the minicluster's own and has none.
"""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yt.wrapper as yt

from minicluster import persist, testing
from minicluster.client import ControlError
from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.rows import wire
from minicluster.tables import row_log
from minicluster.tables.ordered import OrderedData, data_weight, numbered, within_weight
from minicluster.tables.row_log import BLOCK, RowLog
from packages.minicluster.tests.conftest import connect
from packages.minicluster.tests.support.tables_lab import KEYED, PLAIN, lookup, select, table, write

T = "//tmp/t"


def test_a_log_of_rows_is_a_list_that_loses_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_log, "BLOCK", 10_000)
    source = random.Random(3)
    log, plain = RowLog(), list[bytes]()
    for step in range(400):
        rows = [source.randbytes(source.randrange(300)) for _ in range(source.randrange(60))]
        log.extend(rows)
        plain += rows
        if step % 7 == 0:
            gone = source.randrange(len(plain) // 2 + 1)
            log.drop(gone)
            del plain[:gone]
        low, high = sorted(source.randrange(len(plain) + 3) for _ in range(2))
        assert log[low:high] == plain[low:high]
        assert len(log) == len(plain)
    assert len(log._blocks) > 1  # the rows above fill several
    assert log == plain
    assert log.copy() == log


def test_a_dropped_block_is_gone() -> None:
    log = RowLog([bytes(BLOCK)])
    log.extend([b"next"])
    log.drop(1)
    assert not log._blocks
    assert list(log) == [b"next"]


@pytest.mark.parametrize("values", [1, 300], ids=["few", "more than a byte holds"])
def test_rows_are_numbered_where_they_lie(monkeypatch: pytest.MonkeyPatch, values: int) -> None:
    """In blocks and behind them, from any row on, in as many bytes as are asked for."""
    monkeypatch.setattr(row_log, "BLOCK", 20_000)
    data, plain = OrderedData(), list[bytes]()
    for start in range(0, 60, 7):
        rows = [wire.encode([(n, wire.INT64, n)] * values) for n in range(start, start + 7)]
        data.append(rows, timestamp=start + 1)
        plain += rows
    data.trim(3)
    for offset, count in ((0, 99), (3, 5), (17, 30), (60, 5), (99, 1)):
        start = max(offset, 3)
        wanted = [
            wire.extended(
                row, wire.encode([(values, wire.INT64, 4), (values + 1, 3, index)])[8:], 2
            )
            for index, row in enumerate(plain)
            if start <= index < start + count
        ]
        first, spans = data.spans(offset, count)
        assert (first, numbered(spans, values, 4, first)) == (start, wanted)
        weight = sum(map(data_weight, plain[start : start + count])) // 2
        first, spans = data.spans(offset, count, weight)
        fitting = within_weight(plain[start : start + count], weight)
        assert numbered(spans, values, 4, first) == wanted[:fitting]


def memory(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    words = ["ps", "-o", "rss=", "-p", str(pid)]
    return int(subprocess.run(words, capture_output=True, check=True).stdout) / 1024


@pytest.mark.thorough
def test_memory_falls_after_a_queue_is_removed() -> None:
    """To within 10 % of before (issue 30, line 12); the C library has to return its pages too.

    Model: a real cluster keeps rows on disks. The minicluster looks at its tables with some
    requests only (`memory.SHARE`): so the test asks on.
    """
    with testing.start(rpc_proxies=0) as cluster:
        client = connect(cluster)
        fill_and_remove(client, cluster.pid, 10_000)
        before = memory(cluster.pid)
        for _ in range(2):
            full = fill_and_remove(client, cluster.pid, 150_000)
            assert full > before * 1.3
        until = time.monotonic() + 20
        while memory(cluster.pid) >= before * 1.1 and time.monotonic() < until:
            client.exists(T)
        assert memory(cluster.pid) < before * 1.1


def fill_and_remove(client: yt.YtClient, pid: int, many: int) -> float:
    """Fill a queue and remove it; return the MiB that the cluster had when it was full."""
    schema = [{"name": "n", "type": "int64"}, {"name": "text", "type": "string"}]
    client.create("table", T, attributes={"dynamic": True, "schema": schema})
    client.mount_table(T, sync=True)
    for start in range(0, many, 10_000):
        rows = [{"n": n, "text": "x" * 200} for n in range(start, start + 10_000)]
        client.insert_rows(T, rows, format=yt.YsonFormat(format="binary"))
    full = memory(pid)
    client.remove(T)
    client.exists(T)
    return full


# Old versions


def test_a_row_has_at_most_so_many_versions(cluster: Cluster) -> None:
    """Model: a real cluster keeps all versions of the last `min_data_ttl`. A read before those that
    are left fails as it does there: server/node/tablet_node/tablet_manager.cpp,
    ValidateTabletRetainedTimestamp."""
    table(cluster, T, KEYED)
    cluster.tablet_transactions.versions_per_row = 3
    times = []
    for n in range(6):
        write(cluster, T, {"k": 1, "v": "x", "n": n})
        times.append(cluster.clock.timestamp())
    names, keys = cluster.tables.encode(T, [{"k": 1}])
    _, _, (versions,) = cluster.tables.versions(T, wire.join(keys), names)
    assert len(versions) == 3
    assert lookup(cluster, T, {"k": 1}, timestamp=times[3]) == [{"k": 1, "v": b"x", "n": 3}]
    with pytest.raises(YtError, match="is less than retained timestamp"):
        lookup(cluster, T, {"k": 1}, timestamp=times[2])


def test_the_bound_of_versions_is_set_from_outside(fresh: testing.Running) -> None:
    """Model: the bound is the minicluster's own (issue 30, line 13)."""
    client = connect(fresh)
    fresh.client.set_versions_per_row(1)
    client.create("table", T, attributes={"dynamic": True, "schema": KEYED}, force=True)
    client.mount_table(T, sync=True)
    client.insert_rows(T, [{"k": 1, "n": 1}])
    before = client.generate_timestamp()
    client.insert_rows(T, [{"k": 1, "n": 2}])
    with pytest.raises(yt.YtResponseError, match="retained timestamp"):
        list(client.lookup_rows(T, [{"k": 1}], timestamp=before))
    with pytest.raises(ControlError, match="at least 1"):
        fresh.client.set_versions_per_row(0)
    fresh.client.set_versions_per_row(1000)


# Times that are over


def test_a_read_long_ago_is_refused(cluster: Cluster) -> None:
    """server/node/tablet_node/tablet_manager.cpp, ValidateTabletRetainedTimestamp"""
    table(cluster, T, KEYED)
    then = cluster.clock.timestamp()
    write(cluster, T, {"k": 1, "v": "x", "n": 1})
    assert lookup(cluster, T, {"k": 1}, timestamp=then) == []
    cluster.pass_time(1801)
    for read in (
        lambda: lookup(cluster, T, {"k": 1}, timestamp=then),
        lambda: select(cluster, f"* from [{T}]", then),
    ):
        with pytest.raises(YtError, match="retained timestamp"):
            read()


@pytest.mark.parametrize(("fewest", "left"), [(0, []), (1, [1])])
def test_rows_of_a_sorted_table_expire(cluster: Cluster, fewest: int, left: list[int]) -> None:
    """By `max_data_ttl`, if no version has to be kept (documentation,
    user-guide/dynamic-tables/sorted-dynamic-tables, deleting old data)."""
    table(cluster, T, KEYED, min_data_versions=fewest, max_data_ttl=60_000, min_data_ttl=0)
    write(cluster, T, {"k": 1, "v": "x", "n": 1})
    cluster.pass_time(30)
    assert [row["k"] for row in select(cluster, f"k from [{T}]")] == [1]
    cluster.pass_time(40)
    assert [row["k"] for row in select(cluster, f"k from [{T}]")] == left


@pytest.mark.parametrize(
    ("attribute", "lives"), [("expiration_timeout", 10), ("expiration_time", None)]
)
def test_nodes_expire_on_the_clusters_clock(
    cluster: Cluster, attribute: str, lives: int | None
) -> None:
    """server/master/cypress_server/expiration_tracker.cpp"""
    until: Any = 10_000 if lives else round((cluster.clock.now() + 10) * 1000)
    cluster.cypress.create("table", T, attributes={attribute: until})
    cluster.pass_time(8)
    cluster.cypress.get(T + "/@type")
    assert cluster.cypress.exists(T)
    cluster.pass_time(11)
    assert not cluster.cypress.exists(T)


@pytest.mark.parametrize("mode", ["snapshot", "shared", "exclusive"])
def test_only_a_snapshot_lock_does_not_keep_a_node(cluster: Cluster, mode: str) -> None:
    """Source: documentation, user-guide/storage/cypress (TTL for Cypress nodes)."""
    cluster.cypress.create("document", T, attributes={"value": 1, "expiration_timeout": 10_000})
    tx = cluster.transactions.start(timeout_ms=1_000_000)
    cluster.cypress.lock(T, mode, tx=tx)
    cluster.pass_time(15)
    assert cluster.cypress.exists(T) == (mode != "snapshot")
    cluster.transactions.abort(tx)
    cluster.pass_time(15)
    assert not cluster.cypress.exists(T)


def test_reading_an_attribute_puts_a_timeout_off(cluster: Cluster) -> None:
    """Source: documentation, user-guide/storage/cypress (expiration_timeout, touch_time)."""
    cluster.cypress.create("document", T, attributes={"value": 1, "expiration_timeout": 10_000})
    for _ in range(3):
        cluster.pass_time(6)
        assert cluster.cypress.get(f"{T}/@type") == "document"


def test_a_frozen_table_keeps_its_versions(cluster: Cluster) -> None:
    """It is not compacted (documentation, user-guide/dynamic-tables/mapreduce)."""
    table(cluster, T, KEYED, min_data_ttl=60_000, max_data_ttl=60_000)
    write(cluster, T, {"k": 1, "v": "old", "n": 1})
    time = cluster.clock.timestamp()
    write(cluster, T, {"k": 1, "v": "new", "n": 1})
    cluster.tables.freeze(T)
    cluster.pass_time(3600)
    assert lookup(cluster, T, {"k": 1}, timestamp=time) == [{"k": 1, "v": b"old", "n": 1}]
    cluster.tables.unfreeze(T)
    with pytest.raises(YtError, match=r"is less than tablet .* retained timestamp"):
        lookup(cluster, T, {"k": 1}, timestamp=time)


def test_an_access_puts_a_timeout_off(cluster: Cluster) -> None:
    """integration/cypress/test_cypress.py (test_expiration_timeout1)"""
    cluster.cypress.create("document", T, attributes={"value": 1, "expiration_timeout": 10_000})
    for _ in range(3):
        cluster.pass_time(6)
        assert cluster.cypress.get(T) == 1


def test_a_queue_keeps_its_rows_in_a_saved_state(cluster: Cluster, tmp_path: Path) -> None:
    table(cluster, T, PLAIN)
    write(cluster, T, *({"a": n, "b": "x" * 500} for n in range(2000)))
    persist.save(cluster, str(tmp_path / "state"))
    other = Cluster()
    persist.load(other, str(tmp_path / "state"))
    assert len(select(other, f"a from [{T}]")) == 2000


@pytest.mark.thorough
def test_sorted_tables_that_come_and_go_take_no_more_memory() -> None:
    """A removed folder is a circle of nodes, which only the collector frees (issue 30, line 12)."""
    schema = yt.yson.to_yson_type(KEYED, attributes={"unique_keys": True})
    with testing.start(rpc_proxies=0) as cluster:
        client = connect(cluster)
        full = []
        for _ in range(3):
            client.create("map_node", "//tmp/folder")
            attributes = {"dynamic": True, "schema": schema}
            client.create("table", "//tmp/folder/t", attributes=attributes)
            client.mount_table("//tmp/folder/t", sync=True)
            for start in range(0, 60_000, 10_000):
                rows = [{"k": k, "v": "x" * 150} for k in range(start, start + 10_000)]
                binary = yt.YsonFormat(format="binary")
                client.insert_rows("//tmp/folder/t", rows, format=binary)
            full.append(memory(cluster.pid))
            client.remove("//tmp/folder", recursive=True)
            client.exists("//tmp")
        assert full[2] < full[0] * 1.15
