"""Rows with their versions: each value under the timestamp of its own write.

Source: client/table_client/versioned_row.h (TVersionedValue: the timestamp belongs to the value);
server test, integration/dynamic_tables/test_lookup.py, by the names in brackets.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest
import yt.wrapper as yt

from minicluster import testing
from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.rows import wire
from minicluster.rows.from_wire import UPDATE
from minicluster.rpc import versioned
from packages.minicluster.tests.support.basics import BACKENDS, connect
from packages.minicluster.tests.support.tables_lab import KEYED, delete, lookup, table, write

T = "//tmp/t"
History = dict[str, list[tuple[int, Any]]]


def update(cluster: Cluster, **row: Any) -> int:
    """Write some columns of row 1; return the timestamp of the commit."""
    write(cluster, T, {"k": 1, **row}, kind=UPDATE)
    return cluster.tablet_transactions.last_commit


def whole(cluster: Cluster, **row: Any) -> int:
    write(cluster, T, {"k": 1, **row})
    return cluster.tablet_transactions.last_commit


def history(
    cluster: Cluster, limit: int | None = None, columns: Sequence[str] | None = None
) -> tuple[History, list[int], list[int]]:
    """Return the values of row 1 by column, and its times of writes and deletions."""
    names, keys = cluster.tables.encode(T, [{"k": 1}])
    found, shown, (versions,) = cluster.tables.versions(T, wire.join(keys), names, columns=columns)
    data = versioned.encode(versions, found.schema.key_count, shown, limit)
    return decoded(data, [found.schema.columns[index].name for index in shown])


def decoded(data: bytes, columns: Sequence[str]) -> tuple[History, list[int], list[int]]:
    """Read a versioned row whose key is one number, or is left out."""
    count, keys, writes, deletes = struct.unpack_from("<4I", data)
    times = struct.unpack_from(f"<{writes + deletes}Q", data, 16)
    position = 16 + 8 * (writes + deletes) + 16 * keys
    values: History = {}
    for _ in range(count):
        row = b"\x01" + bytes(7) + data[position:]
        ((column, _, value),) = wire.values(row)
        position += len(wire.chunks(row)[column])
        (time,) = struct.unpack_from("<Q", data, position)
        position += 8
        values.setdefault(columns[column], []).append((time, value))
    assert position == len(data)
    return values, [*times[:writes]], [*times[writes:]]


def test_an_update_shows_only_what_it_wrote(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    first = whole(cluster, v="x", n=1)
    second = update(cluster, n=2)
    expected = {"v": [(first, b"x")], "n": [(second, 2), (first, 1)]}
    assert history(cluster) == (expected, [second, first], [])
    assert lookup(cluster, T, {"k": 1}) == [{"k": 1, "v": b"x", "n": 2}]


def test_a_value_that_is_written_again_has_two_versions(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    first = update(cluster, n=1)
    second = update(cluster, n=1)
    assert history(cluster)[0] == {"n": [(second, 1), (first, 1)]}
    third = update(cluster, v="x", n=1)
    assert history(cluster)[0]["v"] == [(third, b"x")]


def test_a_row_written_whole_has_its_nulls(cluster: Cluster) -> None:
    """Documentation, user-guide/dynamic-tables/sorted-dynamic-tables (insert-rows, `--update`)"""
    table(cluster, T, KEYED)
    first = whole(cluster, v="x", n=1)
    second = whole(cluster, n=2)
    assert history(cluster)[0]["v"] == [(second, None), (first, b"x")]


def test_an_update_after_a_deletion_brings_nothing_back(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    first = whole(cluster, v="x", n=1)
    delete(cluster, T, {"k": 1})
    deleted = cluster.tablet_transactions.last_commit
    second = update(cluster, n=2)
    values, writes, deletes = history(cluster)
    assert values == {"v": [(first, b"x")], "n": [(second, 2), (first, 1)]}
    assert (writes, deletes) == ([second, first], [deleted])
    assert history(cluster, limit=1)[0] == {"n": [(second, 2)]}


def test_the_last_version_of_each_column(cluster: Cluster) -> None:
    """test_lookup_versioned_retention; the native client asks for a consumer's offset so."""
    table(cluster, T, KEYED)
    first = whole(cluster, v="x", n=1)
    second = [update(cluster, n=n) for n in (2, 3, 4)][-1]
    values, writes, _ = history(cluster, limit=1)
    assert values == {"v": [(first, b"x")], "n": [(second, 4)]}
    assert writes == [second, first]
    assert history(cluster, 1, ["n"])[1] == writes


def test_the_times_of_a_row_are_those_of_all_columns(cluster: Cluster) -> None:
    """test_lookup_versioned_filter"""
    table(cluster, T, KEYED)
    time = update(cluster, n=1)
    assert history(cluster, columns=["v"]) == ({}, [time], [])


def test_a_value_keeps_its_time_when_old_versions_go(cluster: Cluster) -> None:
    cluster.tablet_transactions.versions_per_row = 2
    table(cluster, T, KEYED)
    first = whole(cluster, v="x", n=1)
    times = [update(cluster, n=n) for n in (2, 3, 4)]
    values = history(cluster)[0]
    assert values == {"v": [(first, b"x")], "n": [(times[2], 4), (times[1], 3)]}


def test_a_new_column_was_not_written_before(cluster: Cluster) -> None:
    """test_lookup_versioned_filter_alter"""
    table(cluster, T, KEYED)
    first = whole(cluster, v="x", n=1)
    cluster.tables.unmount(T)
    schema = [*KEYED, {"name": "later", "type": "string"}]
    cluster.tables.alter(T, schema=schema)
    cluster.tables.mount(T)
    assert history(cluster)[0] == {"v": [(first, b"x")], "n": [(first, 1)]}
    second = update(cluster, later="y")
    assert history(cluster)[0]["later"] == [(second, b"y")]
    assert history(cluster)[0]["n"] == [(first, 1)]


@pytest.mark.skipif("rpc" not in BACKENDS, reason="the native client has no wheel here")
def test_the_native_client_sees_when_a_value_was_written() -> None:
    with testing.start(rpc_proxies=1) as cluster:
        client = connect(cluster.http, "rpc")
        schema = yt.yson.to_yson_type(KEYED, attributes={"unique_keys": True})
        client.create("table", T, attributes={"dynamic": True, "schema": schema})
        client.mount_table(T, sync=True)
        client.insert_rows(T, [{"k": 1, "v": "x", "n": 1}])
        client.insert_rows(T, [{"k": 1, "n": 2}], update=True)
        (row,) = client.lookup_rows(T, [{"k": 1}], versioned=True)
        second, first = row.attributes["write_timestamps"]
        shown = {
            name: [(value.attributes["timestamp"], plain(value)) for value in row[name]]
            for name in ("v", "n")
        }
        assert shown == {"v": [(first, "x")], "n": [(second, 2), (first, 1)]}


def plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else int(value)


SUMMED = [KEYED[0], {"name": "v", "type": "int64", "aggregate": "sum"}]


def flags_of(cluster: Cluster) -> list[tuple[int, Any]]:
    """Return of each stored value of `v` its flags and the value, the latest first."""
    names, keys = cluster.tables.encode(T, [{"k": 1}])
    found, shown, (versions,) = cluster.tables.versions(T, wire.join(keys), names, columns=["v"])
    data = versioned.encode(versions, found.schema.key_count, shown)
    count, _, writes, deletes = struct.unpack_from("<4I", data)
    start = 16 + 8 * (writes + deletes)
    pieces = [data[start + 24 * place : start + 24 * (place + 1)] for place in range(count)]
    return [(piece[3], struct.unpack_from("<q", piece, 8)[0]) for piece in pieces]


def test_added_values_are_shown_as_they_were_written(cluster: Cluster) -> None:
    """A versioned lookup aggregates nothing, until a compaction drops what was before (ytlib/
    table_client/versioned_row_merger.cpp)."""
    table(cluster, T, SUMMED)
    for kind, value in (("write", 100), ("add", 5), ("add", -3)):
        item = {"k": 1, "v": value}
        cluster.tables.modify_items(T, UPDATE, [item], aggregate=kind == "add")
    assert flags_of(cluster) == [(1, -3), (1, 5), (0, 100)]
    assert lookup(cluster, T, {"k": 1}) == [{"k": 1, "v": 102}]
    cluster.cypress.set(f"{T}/@min_data_ttl", 0)
    cluster.cypress.set(f"{T}/@max_data_versions", 2)
    cluster.pass_time(10)
    assert flags_of(cluster) == [(1, -3), (0, 105)]
    assert lookup(cluster, T, {"k": 1}) == [{"k": 1, "v": 102}]


def test_a_flag_of_a_column_without_a_function_fails_the_commit(cluster: Cluster) -> None:
    """Source: client/table_client/unversioned_row.cpp, ValidateClientRow."""
    table(cluster, T, KEYED)
    key = wire.encode_value(0, wire.INT64, 1)
    row = wire.from_chunks([key, wire.encode_value(1, wire.STRING, b"a", wire.AGGREGATE)])
    with pytest.raises(YtError, match='flag is set for value in column "v" which is not'):
        cluster.tables.modify_rowset(T, wire.join([row]), [0], ["k", "v"])
