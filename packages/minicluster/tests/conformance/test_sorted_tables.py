"""Sorted dynamic tables: rows by key, and their tablets."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yt.wrapper as yt
from yt import yson
from yt.wrapper.errors import YtResponseError

from packages.minicluster.tests.conformance.conftest import Row, eventually, make_table, over_http
from tests.support import codes

KEYED: list[Row] = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "string"},
    {"name": "n", "type": "int64"},
]


@pytest.fixture
def table(client: Any, root: str) -> str:
    return make_table(client, f"{root}/t", KEYED)


def lookup(client: Any, table: str, *keys: int, **options: Any) -> list[Any]:
    return list(client.lookup_rows(table, [{"k": key} for key in keys], **options))


def test_rows_are_found_by_key(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (reading rows)"""
    client.insert_rows(table, [{"k": k, "v": f"ж{k}", "n": -k} for k in range(100)])
    assert lookup(client, table, 7, 42) == [
        {"k": 7, "v": "ж7", "n": -7},
        {"k": 42, "v": "ж42", "n": -42},
    ]


def test_a_missing_row_is_left_out_or_kept_as_null(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (limiting the read
    time range: keep_missing_rows)"""
    client.insert_rows(table, [{"k": 1, "v": "a"}])
    row = {"k": 1, "v": "a", "n": None}
    assert lookup(client, table, 0, 1) == [row]
    assert lookup(client, table, 0, 1, keep_missing_rows=True) == [None, row]


def test_a_partial_answer_keeps_no_missing_rows(client: Any, table: str) -> None:
    """Source: server source, ytlib/api/native/client_dynamic_tables_impl.cpp (DoLookupRowsOnce)"""
    with pytest.raises(yt.YtError, match="cannot be used together"):
        lookup(client, table, 1, keep_missing_rows=True, enable_partial_result=True)
    assert lookup(client, table, 1, enable_partial_result=True) == []


def test_a_null_in_an_optional_key_column_finds_its_row(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_sorted_dynamic_tables.py
    (test_key_filter_with_schema_alter)"""
    keys = [{"name": name, "type": "int64", "sort_order": "ascending"} for name in ("a", "b")]
    table = make_table(client, f"{root}/nulls", [*keys, {"name": "v", "type": "string"}])
    client.insert_rows(table, [{"a": 1, "b": None, "v": "null"}, {"a": 1, "b": 0, "v": "zero"}])
    found = client.lookup_rows(table, [{"a": 1, "b": None}, {"a": 1, "b": 0}])
    assert [row["v"] for row in found] == ["null", "zero"]


@over_http
def test_a_null_in_a_required_key_column_fails_the_lookup(client: Any, root: str) -> None:
    """Source: server source, client/table_client/unversioned_row.cpp (ValidateValueType)"""
    key = {"name": "k", "type": "int64", "sort_order": "ascending", "required": True}
    table = make_table(client, f"{root}/strict", [key, {"name": "v", "type": "string"}])
    client.insert_rows(table, [{"k": 1, "v": "a"}])
    with pytest.raises(yt.YtError, match='"k" cannot have "null" value') as caught:
        list(client.lookup_rows(table, [{"k": 1}, {"k": None}]))
    assert caught.value.contains_code(codes.SCHEMA_VIOLATION)


def test_only_the_columns_asked_for_come(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (reading rows)"""
    client.insert_rows(table, [{"k": 1, "v": "a", "n": 2}])
    assert lookup(client, table, 1, column_names=["n"]) == [{"n": 2}]


@over_http
def test_a_column_that_is_not_there_fails_the_lookup(client: Any, table: str) -> None:
    """Source: server source, ytlib/api/native/client_dynamic_tables_impl.cpp (RemapColumnFilter)"""
    with pytest.raises(yt.YtError, match='Invalid column "gone" in column filter') as caught:
        lookup(client, table, 1, column_names=["n", "gone"])
    assert caught.value.contains_code(codes.COLUMN_NOT_FOUND)


def test_a_write_replaces_the_whole_row(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (inserting a row,
    overwrite)"""
    client.insert_rows(table, [{"k": 1, "v": "a", "n": 2}])
    client.insert_rows(table, [{"k": 1, "v": "b"}])
    assert lookup(client, table, 1) == [{"k": 1, "v": "b", "n": None}]


def test_an_update_keeps_the_other_columns(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (inserting a row,
    update)"""
    client.insert_rows(table, [{"k": 1, "v": "a", "n": 2}])
    client.insert_rows(table, [{"k": 1, "v": "b"}, {"k": 2, "v": "new"}], update=True)
    assert lookup(client, table, 1, 2) == [
        {"k": 1, "v": "b", "n": 2},
        {"k": 2, "v": "new", "n": None},
    ]


def test_an_update_names_a_column_beside_the_key(client: Any, table: str) -> None:
    """Source: server source, client/table_client/unversioned_row.h (ValidateClientDataRow)"""
    client.insert_rows(table, [{"k": 1, "v": "a", "n": 2}])
    with pytest.raises(YtResponseError, match="At least one non-key column must be specified"):
        client.insert_rows(table, [{"k": 1}], update=True)
    assert lookup(client, table, 1) == [{"k": 1, "v": "a", "n": 2}]
    client.insert_rows(table, [{"k": 1}])
    assert lookup(client, table, 1) == [{"k": 1, "v": None, "n": None}]


def test_a_column_that_the_table_lacks_is_refused(client: Any, table: str) -> None:
    """Source: server source, client/table_client/table_consumer.cpp (OnMyKeyedItem)"""
    for request in (
        lambda: client.insert_rows(table, [{"k": 1, "x": 1}]),
        lambda: client.insert_rows(table, [{"k": 1, "x": 1}], update=True),
        lambda: client.delete_rows(table, [{"k": 1, "v": "a"}]),
        lambda: list(client.lookup_rows(table, [{"k": 1, "v": "a"}])),
    ):
        with pytest.raises(YtResponseError, match=r'No column "[xv]" in table schema') as caught:
            request()
        assert caught.value.contains_code(codes.SCHEMA_VIOLATION)


@pytest.mark.thorough
def test_a_string_is_at_most_16_megabytes_long(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/overview (limitations)"""
    longest = b"x" * (16 << 20)
    client.insert_rows(table, [{"k": 1, "v": longest}])
    assert lookup(client, table, 1)[0]["v"] == longest.decode()
    for update in (False, True):
        with pytest.raises(YtResponseError, match="is too long") as caught:
            client.insert_rows(table, [{"k": 1, "v": longest + b"x"}], update=update)
        assert caught.value.contains_code(codes.STRING_TOO_LONG)
    assert lookup(client, table, 1)[0]["v"] == longest.decode()


def test_nan_is_not_a_key(client: Any, root: str) -> None:
    """Source: server source, client/table_client/unversioned_row.cpp (ValidateDynamicValue)"""
    columns = [{"name": "k", "type": "double", "sort_order": "ascending"}, *KEYED[1:]]
    table = make_table(client, f"{root}/doubles", columns)
    for change in (
        lambda: client.insert_rows(table, [{"k": 1.0, "v": "a"}, {"k": math.nan, "v": "b"}]),
        lambda: client.delete_rows(table, [{"k": math.nan}]),
        lambda: list(client.lookup_rows(table, [{"k": math.nan}])),
    ):
        with pytest.raises(yt.YtError) as caught:
            change()
        assert caught.value.contains_code(codes.KEY_CANNOT_BE_NAN)
    client.insert_rows(table, [{"k": math.inf, "v": "a"}, {"k": 1.0, "v": "b"}])
    assert [row["k"] for row in client.select_rows(f"* from [{table}]")] == [1.0, math.inf]


@pytest.mark.parametrize("keys", [0, 1])
def test_a_row_has_1024_values_at_most(client: Any, root: str, keys: int) -> None:
    """Source: server source, client/table_client/unversioned_row.cpp (ValidateRowValueCount);
    in an ordered table the driver sends `$tablet_index` with each row."""
    most = 1024 if keys else 1023
    for count in (most, most + 1):
        columns: list[Row] = [{"name": f"c{number}", "type": "int64"} for number in range(count)]
        if keys:
            columns[0]["sort_order"] = "ascending"
        table = make_table(client, f"{root}/wide-{count}", columns)
        row = {column["name"]: 1 for column in columns}
        if count == most:
            client.insert_rows(table, [row])
            continue
        with pytest.raises(yt.YtError, match="Too many values in row") as caught:
            client.insert_rows(table, [row])
        assert caught.value.contains_code(codes.TOO_MANY_VALUES_IN_ROW)


def test_the_last_of_two_rows_with_one_key_stays(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (data model: the key
    is unique)"""
    client.insert_rows(table, [{"k": 1, "v": "a"}, {"k": 1, "v": "b"}])
    assert [row["v"] for row in lookup(client, table, 1)] == ["b"]


def test_a_deleted_row_is_gone(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (deleting rows)"""
    client.insert_rows(table, [{"k": k, "v": "a"} for k in range(3)])
    client.delete_rows(table, [{"k": 1}])
    assert [row["k"] for row in lookup(client, table, 0, 1, 2)] == [0, 2]


def test_deleting_a_missing_row_changes_nothing(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (deleting rows)"""
    client.insert_rows(table, [{"k": 1}])
    client.delete_rows(table, [{"k": 2}])
    assert len(lookup(client, table, 1, 2)) == 1


def test_an_optional_key_column_that_is_left_out_is_null(client: Any, root: str) -> None:
    """Source: server test,
    integration/tests/dynamic_tables/test_sorted_dynamic_tables.py::test_required_columns"""
    second = {"name": "l", "type": "int64", "sort_order": "ascending"}
    table = make_table(client, f"{root}/t", [KEYED[0], second, *KEYED[1:]])
    client.insert_rows(table, [{"k": 1, "v": "a"}])
    (row,) = client.lookup_rows(table, [{"k": 1}])
    assert (row["l"], row["v"]) == (None, "a")
    client.delete_rows(table, [{"k": 1}])
    assert list(client.select_rows(f"* from [{table}]")) == []


def test_a_required_key_column_must_be_there(client: Any, root: str) -> None:
    """Source: server test,
    integration/tests/dynamic_tables/test_sorted_dynamic_tables.py::test_required_columns"""
    second = {"name": "l", "type": "int64", "sort_order": "ascending", "required": True}
    table = make_table(client, f"{root}/t", [KEYED[0], second, *KEYED[1:]])
    with pytest.raises(YtResponseError):
        client.insert_rows(table, [{"k": 1, "v": "a"}])
    assert list(client.select_rows(f"* from [{table}]")) == []


def test_reading_sees_the_table_as_it_was_at_a_timestamp(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (reading rows)"""
    client.insert_rows(table, [{"k": 1, "v": "old"}])
    then = client.generate_timestamp()
    client.insert_rows(table, [{"k": 1, "v": "new"}, {"k": 2, "v": "new"}])
    assert [row["v"] for row in lookup(client, table, 1, 2, timestamp=then)] == ["old"]
    assert [row["v"] for row in lookup(client, table, 1, 2)] == ["new", "new"]
    (row,) = client.select_rows(f"v from [{table}]", timestamp=then)
    assert row == {"v": "old"}


def test_rows_survive_an_unmount(client: Any, table: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_select_from_multi_store)"""
    client.insert_rows(table, [{"k": 1, "v": "a"}])
    client.unmount_table(table, sync=True)
    client.mount_table(table, sync=True)
    assert len(lookup(client, table, 1)) == 1


def test_an_unmounted_table_is_neither_read_nor_written(client: Any, table: str) -> None:
    """Source: client, yt/wrapper/errors.py (YtTabletNotMounted, code 1702)"""
    client.unmount_table(table, sync=True)
    with pytest.raises(yt.YtError) as writing:
        client.insert_rows(table, [{"k": 1}])
    with pytest.raises(yt.YtError) as looking:
        lookup(client, table, 1)
    with pytest.raises(yt.YtError) as selecting:
        list(client.select_rows(f"* from [{table}]"))
    for caught in (writing, looking, selecting):
        assert caught.value.contains_code(codes.TABLET_NOT_MOUNTED)


def test_a_frozen_table_is_only_read(client: Any, table: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_access_to_frozen)"""
    client.insert_rows(table, [{"k": 1}])
    client.freeze_table(table, sync=True)
    assert len(lookup(client, table, 1)) == 1
    with pytest.raises(yt.YtError):
        client.insert_rows(table, [{"k": 2}])
    client.unfreeze_table(table, sync=True)
    client.insert_rows(table, [{"k": 2}])
    assert len(lookup(client, table, 1, 2)) == 2


def test_mounting_twice_is_no_error(client: Any, table: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_unmount)"""
    client.mount_table(table, sync=True)
    client.unmount_table(table, sync=True)
    eventually(lambda: client.get(f"{table}/@tablet_state"), "unmounted")


def test_resharding_cuts_by_pivot_keys(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/resharding"""
    rows = [{"k": k, "v": "a", "n": k} for k in range(20)]
    client.insert_rows(table, rows)
    client.unmount_table(table, sync=True)
    client.reshard_table(table, pivot_keys=[[], [5], [10]], sync=True)
    client.mount_table(table, sync=True)
    assert [tablet["pivot_key"] for tablet in client.get(f"{table}/@tablets")] == [[], [5], [10]]
    assert list(client.select_rows(f"* from [{table}] order by k limit 100")) == rows


def test_a_mounted_table_is_not_resharded(client: Any, table: str) -> None:
    """Source: client, yt/wrapper/dynamic_table_commands.py (reshard_table)"""
    with pytest.raises(YtResponseError):
        client.reshard_table(table, pivot_keys=[[], [5]], sync=True)
    assert client.get(f"{table}/@tablet_count") == 1


@pytest.mark.thorough
def test_a_transaction_may_not_be_too_large(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (restrictions)"""
    client.insert_rows(table, ({"k": k} for k in range(100_000)))
    with pytest.raises(yt.YtError, match="too many rows"):
        client.insert_rows(table, ({"k": -k} for k in range(1, 100_002)))
    assert list(client.select_rows(f"sum(1) as c from [{table}] group by 1")) == [{"c": 100_000}]


def test_the_keys_of_a_dynamic_table_are_unique(client: Any, root: str) -> None:
    """Source: server test, server/master/table_server/table_manager.cpp ("Sorted dynamic tables
    contain unique keys, set this for user")"""
    path = f"{root}/t"
    client.create("table", path, attributes={"dynamic": True, "schema": KEYED})
    assert client.get(f"{path}/@schema/@unique_keys")
    client.alter_table(path, schema=[*KEYED, {"name": "more", "type": "string"}])
    assert client.get(f"{path}/@schema/@unique_keys")


def test_a_static_table_gets_unique_keys_with_the_schema_that_makes_it_dynamic(
    client: Any, root: str
) -> None:
    """Source: server test, server/master/table_server/table_node_proxy.cpp (Alter)"""
    path = f"{root}/t"
    client.create("table", path, attributes={"schema": KEYED})
    assert not client.get(f"{path}/@schema/@unique_keys")
    with pytest.raises(yt.YtError):
        client.alter_table(path, dynamic=True)
    client.alter_table(path, dynamic=True, schema=KEYED)
    assert client.get(f"{path}/@schema/@unique_keys")


def test_a_mounted_table_is_not_moved(client: Any, table: str, root: str) -> None:
    """Source: server test, server/master/tablet_server/tablet_manager.cpp (CloneTablet: "Cannot
    move dynamic table")"""
    client.insert_rows(table, [{"k": 1, "v": "a", "n": 2}])
    with pytest.raises(yt.YtError, match="Cannot move dynamic table"):
        client.move(table, f"{root}/moved")
    client.freeze_table(table, sync=True)
    with pytest.raises(yt.YtError, match="Cannot move dynamic table"):
        client.move(table, f"{root}/moved")
    client.unmount_table(table, sync=True)
    client.move(table, f"{root}/moved")
    client.mount_table(f"{root}/moved", sync=True)
    assert lookup(client, f"{root}/moved", 1) == [{"k": 1, "v": "a", "n": 2}]


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_tablets_of_a_locked_table_stay_as_they_are(
    client: Any, other: Any, table: str, mode: str
) -> None:
    """Source: server test, server/master/table_server/table_node_proxy.cpp (LockThisImpl in Mount,
    Unmount, Freeze, Remount, Reshard)"""
    with client.Transaction():
        client.lock(table, mode=mode)
        for change in (other.unmount_table, other.freeze_table, other.remount_table):
            with pytest.raises(yt.YtError) as caught:
                change(table)
            assert caught.value.contains_code(codes.CONCURRENT_TRANSACTION_LOCK_CONFLICT)
        assert other.get(f"{table}/@tablet_state") == "mounted"
    other.unmount_table(table, sync=True)


def test_a_snapshot_lock_does_not_keep_a_table_mounted(client: Any, other: Any, table: str) -> None:
    """Source: documentation, user-guide/storage/transactions (lock modes)"""
    with client.Transaction():
        client.lock(table, mode="snapshot")
        other.unmount_table(table, sync=True)


def test_rows_of_a_static_table_keep_the_time_of_their_write(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_versioned_lookup.py
    (test_versioned_lookup_early_timestamp_after_alter, test_versioned_lookup_unversioned_chunks)"""
    table = f"{root}/static"
    schema = yson.to_yson_type(KEYED, attributes={"unique_keys": True})
    client.create("table", table, attributes={"schema": schema})
    times = [client.generate_timestamp()]
    for path, key in ((table, 1), (f"<append=%true>{table}", 2)):
        client.write_table(path, [{"k": key, "v": "a", "n": key}])
        times.append(client.generate_timestamp())
    client.alter_table(table, dynamic=True)
    client.mount_table(table, sync=True)
    found = [
        [row["k"] for row in client.lookup_rows(table, [{"k": 1}, {"k": 2}], timestamp=time)]
        for time in times
    ]
    assert found == [[], [1], [1, 2]]
