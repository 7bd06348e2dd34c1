"""Computed columns: a hash before the key spreads rows over tablets."""

from __future__ import annotations

from typing import Any

import pytest
import yt.wrapper as yt
from yt import yson

from packages.minicluster.tests.conformance.conftest import Row, make_table, over_http
from tests.support import codes

HASHED: list[Row] = [
    {"name": "h", "type": "uint64", "sort_order": "ascending", "expression": "farm_hash(k) % 10"},
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "string"},
]


@pytest.fixture
def table(client: Any, root: str) -> str:
    return make_table(client, f"{root}/t", HASHED)


def test_the_server_fills_in_what_is_computed(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (computed columns);
    server test, integration/dynamic_tables/test_sorted_dynamic_tables.py (test_computed_columns)"""
    client.insert_rows(table, [{"k": k, "v": f"{k}"} for k in range(30)])
    rows = list(client.select_rows(f"h, farm_hash(k) % 10 as computed, k from [{table}]"))
    assert len(rows) == 30
    assert all(row["h"] == row["computed"] for row in rows)
    assert rows == sorted(rows, key=lambda row: (row["h"], row["k"]))


def test_a_key_is_looked_up_and_deleted_without_it(client: Any, table: str) -> None:
    """Source: server test, integration/dynamic_tables/test_sorted_dynamic_tables.py
    (test_computed_columns)"""
    client.insert_rows(table, [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    client.insert_rows(table, [{"k": 1, "v": "c"}], update=True)
    (row,) = client.lookup_rows(table, [{"k": 1}])
    assert (row["k"], row["v"]) == (1, "c")
    client.delete_rows(table, [{"k": 1}])
    assert [row["k"] for row in client.lookup_rows(table, [{"k": 1}, {"k": 2}])] == [2]


@over_http
def test_nobody_gives_its_value(client: Any, table: str) -> None:
    """Source: server source, client/table_client/schema.cpp (ToWrite, ToLookup)"""
    with pytest.raises(yt.YtError, match='No column "h" in table schema'):
        client.insert_rows(table, [{"h": yson.YsonUint64(5), "k": 1, "v": "a"}])
    with pytest.raises(yt.YtError):
        list(client.lookup_rows(table, [{"h": yson.YsonUint64(5), "k": 1}]))


def test_rows_go_to_the_tablet_of_their_hash(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (computed columns)"""
    pivots = [[], [yson.YsonUint64(5)]]
    table = make_table(client, f"{root}/cut", HASHED, pivot_keys=pivots)
    client.insert_rows(table, [{"k": k, "v": "a"} for k in range(100)])
    (low,) = client.select_rows(f"sum(1) as n from [{table}] where h < 5u group by 1")
    assert 0 < low["n"] < 100


def test_a_null_has_a_hash(client: Any, table: str) -> None:
    """Source: server source, client/table_client/unversioned_value.cpp (GetFarmFingerprint)"""
    client.insert_rows(table, [{"k": None, "v": "null"}])
    assert [row["v"] for row in client.select_rows(f"v from [{table}]")] == ["null"]


def test_static_tables_compute_as_well(client: Any, root: str) -> None:
    """Source: server test, integration/tables/test_tables.py (test_computed_columns)"""
    path = f"{root}/static"
    columns = [
        {"name": "a", "type": "int64"},
        {"name": "double", "type": "int64", "expression": "a * 2"},
    ]
    client.create("table", path, attributes={"schema": columns})
    client.write_table(path, [{"a": 3}])
    assert list(client.read_table(path)) == [{"a": 3, "double": 6}]
    message = 'Column "double" is computed automatically and should not be provided by user'
    with pytest.raises(yt.YtError, match=message) as caught:
        client.write_table(path, [{"a": 3, "double": 6}])
    assert caught.value.contains_code(codes.SCHEMA_VIOLATION)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"expression": "farm_hash(k)", "type": "int64"}, "type mismatch: declared type is"),
        ({"expression": "farm_hash(v)"}, 'depends on a non-key column "v"'),
        ({"expression": "nothing + 1u"}, "nothing"),
        ({"expression": "farm_hash(k"}, "rror"),
        ({"expression": "farm_hash(k)", "required": True}, "Computed column cannot be required"),
    ],
)
def test_expressions_are_checked(client: Any, root: str, column: Row, message: str) -> None:
    """Source: server source, ytlib/table_client/schema.cpp (ValidateComputedColumns)"""
    schema = yson.to_yson_type([{**HASHED[0], **column}, *HASHED[1:]])
    with pytest.raises(yt.YtError, match=message):
        client.create("table", f"{root}/t", attributes={"dynamic": True, "schema": schema})


def test_a_value_is_not_computed(client: Any, root: str) -> None:
    """Source: server source, ytlib/table_client/schema.cpp (ValidateComputedColumns)"""
    value = {"name": "w", "type": "uint64", "expression": "farm_hash(k)"}
    with pytest.raises(yt.YtError, match='Non-key column "w" cannot be computed'):
        make_table(client, f"{root}/t", [HASHED[1], value])


def test_an_expression_stays(client: Any, table: str) -> None:
    """Source: server source, ytlib/table_client/schema.cpp (ValidateColumnSchemaUpdate,
    ValidateTableSchemaUpdate)"""
    client.unmount_table(table, sync=True)
    for columns, message in (
        ([{**HASHED[0], "expression": "farm_hash(k)"}, *HASHED[1:]], "Expression mismatch"),
        ([{**HASHED[0], "expression": None}, *HASHED[1:]], "Expression mismatch"),
    ):
        schema = yson.to_yson_type(columns, attributes={"unique_keys": True})
        with pytest.raises(yt.YtError, match=message):
            client.alter_table(table, schema=schema)
