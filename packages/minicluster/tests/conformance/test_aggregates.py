"""Aggregating columns of sorted tables: sum, min, max and first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yt.wrapper as yt
from yt import yson

from packages.minicluster.tests.conformance.conftest import Row, make_table, over_http, within
from tests.support import codes

KEY: Row = {"name": "k", "type": "int64", "sort_order": "ascending"}


def aggregating(client: Any, root: str, function: str, **column: Any) -> str:
    added = {"name": "v", "type": "int64", "aggregate": function, **column}
    return make_table(client, f"{root}/t", [KEY, added, {"name": "w", "type": "string"}])


def add(client: Any, table: str, *rows: Row, **options: Any) -> None:
    client.insert_rows(table, rows, aggregate=True, **{"update": True, **options})


def value(client: Any, table: str, key: int = 1) -> Any:
    return next((row["v"] for row in client.lookup_rows(table, [{"k": key}])), "missing")


@over_http
@pytest.mark.parametrize(
    ("function", "kind", "values", "expected"),
    [
        ("sum", "int64", [5, 7, -20], -8),
        ("sum", "int64", [2**63 - 1, 1], -(2**63)),
        ("sum", "uint64", [yson.YsonUint64(2**64 - 1), yson.YsonUint64(3)], 2),
        ("sum", "double", [0.5, 0.25], 0.75),
        ("min", "int64", [5, 3, 4], 3),
        ("max", "uint64", [yson.YsonUint64(5), yson.YsonUint64(7)], 7),
        ("min", "string", ["b", "a", "ab"], "a"),
        ("max", "boolean", [False, True], True),
        ("first", "int64", [5, 3, 4], 5),
        ("first", "any", [{"a": 1}, {"a": 2}], {"a": 1}),
        ("sum", "int64", [None, 5, None], 5),
        ("min", "int64", [5, None], 5),
        ("first", "int64", [None, 3, 4], 3),
        ("sum", "int64", [None, None], None),
    ],
)
def test_values_are_folded(
    client: Any, root: str, function: str, kind: str, values: list[Any], expected: Any
) -> None:
    """Source: server test, integration/dynamic_tables/test_sorted_dynamic_tables.py
    (test_aggregate_update, test_aggregate_min_max, test_aggregate_first); documentation,
    user-guide/dynamic-tables/sorted-dynamic-tables (aggregation columns); observed, FACTS.md s11"""
    table = aggregating(client, root, function, type=kind)
    for one in values:
        add(client, table, {"k": 1, "v": one})
    assert value(client, table) == expected
    assert [row["v"] for row in client.select_rows(f"v from [{table}]")] == [expected]


@over_http
def test_a_write_without_the_flag_begins_again(client: Any, root: str) -> None:
    """Source: server source, ytlib/table_client/row_merger.cpp (BuildMergedRow)"""
    table = aggregating(client, root, "sum")
    add(client, table, {"k": 1, "v": 5}, {"k": 1, "v": 6})
    client.insert_rows(table, [{"k": 1, "v": 100}], update=True)
    add(client, table, {"k": 1, "v": 1})
    assert value(client, table) == 101


def test_a_deletion_begins_from_nothing(client: Any, root: str) -> None:
    """Source: server source, ytlib/table_client/row_merger.cpp (BuildMergedRow)"""
    table = aggregating(client, root, "sum")
    add(client, table, {"k": 1, "v": 5})
    client.delete_rows(table, [{"k": 1}])
    assert value(client, table) == "missing"
    add(client, table, {"k": 1, "v": 3})
    assert value(client, table) == 3


def test_other_columns_are_written_plainly(client: Any, root: str) -> None:
    """Source: server source, client/table_client/value_consumer.cpp (TBuildingValueConsumer)"""
    table = aggregating(client, root, "sum")
    add(client, table, {"k": 1, "v": 5, "w": "a"})
    add(client, table, {"k": 1, "v": 5, "w": "b"})
    assert list(client.lookup_rows(table, [{"k": 1}])) == [{"k": 1, "v": 10, "w": "b"}]
    add(client, table, {"k": 1, "w": "c"}, update=False)
    assert list(client.lookup_rows(table, [{"k": 1}])) == [{"k": 1, "v": 10, "w": "c"}]
    client.insert_rows(table, [{"k": 1, "w": "d"}])
    assert list(client.lookup_rows(table, [{"k": 1}])) == [{"k": 1, "v": None, "w": "d"}]


@over_http
def test_a_read_at_a_time_sees_what_was_added_by_then(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_sorted_dynamic_tables.py
    (test_aggregate_update)"""
    table = aggregating(client, root, "sum")
    times = []
    for one in (5, 7, -2):
        add(client, table, {"k": 1, "v": one})
        times.append(client.generate_timestamp())
    found = [next(client.lookup_rows(table, [{"k": 1}], timestamp=time))["v"] for time in times]
    assert found == [5, 12, 10]
    query = f"v from [{table}]"
    assert [next(client.select_rows(query, timestamp=time))["v"] for time in times] == found


@pytest.fixture
def together(client: Any, root: str) -> Callable[..., Any]:
    """Plays steps in one transaction on a row of 100 and returns its value; None for a deletion."""
    table = aggregating(client, root, "sum")
    client.insert_rows(table, [{"k": 1, "v": 100, "w": "old"}])

    def played(*steps: Any) -> Any:
        tx = client.start_transaction(type="tablet", sticky=True, timeout=60_000)
        with within(client, tx):
            for kind, one in steps:
                if kind == "delete":
                    client.delete_rows(table, [{"k": 1}])
                else:
                    row = {"k": 1, "v": one}
                    client.insert_rows(table, [row], update=True, aggregate=kind == "add")
        client.commit_transaction(tx)
        return next(iter(client.lookup_rows(table, [{"k": 1}])), None)

    return played


@over_http
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("add", 1), ("add", 2)], (103, "old")),
        ([("write", 1), ("add", 2)], (3, "old")),
        ([("add", 1), ("write", 2)], (2, "old")),
        ([("delete", 0), ("add", 2)], (2, None)),
        ([("delete", 0), ("write", 2), ("add", 3)], (5, None)),
        ([("add", 2), ("delete", 0)], None),
    ],
)
def test_writes_of_one_transaction_are_merged(
    together: Callable[..., Any], steps: list[Any], expected: Any
) -> None:
    """Source: server source, ytlib/api/native/tablet_request_batcher.cpp,
    ytlib/table_client/row_merger.cpp (TUnversionedRowMerger)"""
    row = together(*steps)
    assert (row and (row["v"], row["w"])) == expected


@over_http
def test_two_transactions_that_add_to_one_key_conflict(client: Any, root: str) -> None:
    """Source: server source, ytlib/api/native/transaction.cpp (GuardedSubmitRows)"""
    table = aggregating(client, root, "sum")
    tx = client.start_transaction(type="tablet", sticky=True, timeout=60_000)
    with within(client, tx):
        add(client, table, {"k": 1, "v": 1})
    add(client, table, {"k": 1, "v": 2})
    with pytest.raises(yt.YtError) as caught:
        client.commit_transaction(tx)
    assert caught.value.contains_code(codes.TABLET_LOCK_CONFLICT)
    assert value(client, table) == 2


@over_http
def test_the_flag_of_a_table_without_functions_says_nothing(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_sorted_dynamic_tables.py
    (test_aggregate_alter)"""
    table = make_table(client, f"{root}/t", [KEY, {"name": "v", "type": "int64"}])
    for one in (1, 2):
        add(client, table, {"k": 1, "v": one})
    assert value(client, table) == 2


def refused(client: Any, root: str, **column: Any) -> str:
    schema = yson.to_yson_type([KEY, {"name": "v", **column}], attributes={"unique_keys": True})
    with pytest.raises(yt.YtError) as caught:
        client.create("table", f"{root}/t", attributes={"dynamic": True, "schema": schema})
    return str(caught.value)


@pytest.mark.parametrize("name", ["avg", "argmax", "cardinality", "nonsense", ""])
def test_columns_have_few_functions(client: Any, root: str, name: str) -> None:
    """Source: server source, client/table_client/schema.cpp (ValidateColumnSchema); observed,
    FACTS.md s12"""
    said = refused(client, root, type="int64", aggregate=name)
    assert 'Error validating schema of column "v"' in said
    assert f'Invalid aggregate function "{name}"' in said


def test_keys_are_not_aggregated(client: Any, root: str) -> None:
    """Source: server source, client/table_client/schema.cpp (ValidateColumnSchema)"""
    said = refused(client, root, type="int64", sort_order="ascending", aggregate="sum")
    assert "Key column cannot be aggregated" in said


@pytest.mark.parametrize("name", ["int32", "uint8", "float", "utf8", "json", "timestamp"])
def test_aggregated_columns_have_physical_types(client: Any, root: str, name: str) -> None:
    """Source: server test, integration/dynamic_tables/test_aggregate_columns.py
    (test_logical_type_column_constrains); server source, ytlib/table_client/schema.cpp"""
    said = refused(client, root, type=name, aggregate="max")
    assert f'Aggregated column "v" is forbidden to have logical type "{name}"' in said


@pytest.mark.parametrize(
    ("function", "name"),
    [("sum", "string"), ("sum", "boolean"), ("min", "any"), ("xdelta", "int64")],
)
def test_each_function_has_types(client: Any, root: str, function: str, name: str) -> None:
    """Source: server source, ytlib/table_client/schema.cpp (ValidateAggregatedColumns)"""
    said = refused(client, root, type=name, aggregate=function)
    assert f'Argument type mismatch in aggregate function "{function}" from column "v"' in said


def altered(client: Any, table: str, *columns: Row) -> None:
    client.unmount_table(table, sync=True)
    schema = yson.to_yson_type([KEY, *columns], attributes={"unique_keys": True})
    client.alter_table(table, schema=schema)
    client.mount_table(table, sync=True)


@over_http
def test_a_column_may_get_a_function(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_sorted_dynamic_tables.py
    (test_aggregate_alter)"""
    table = make_table(client, f"{root}/t", [KEY, {"name": "v", "type": "int64"}])
    client.insert_rows(table, [{"k": 1, "v": 100}])
    altered(client, table, {"name": "v", "type": "int64", "aggregate": "max"})
    for one in (5, 101):
        add(client, table, {"k": 1, "v": one})
    add(client, table, {"k": 2, "v": 7})
    assert (value(client, table), value(client, table, 2)) == (101, 7)


@pytest.mark.parametrize("function", [None, "max"])
def test_a_function_stays(client: Any, root: str, function: str | None) -> None:
    """Source: server source, ytlib/table_client/schema.cpp (ValidateColumnSchemaUpdate)"""
    table = aggregating(client, root, "sum")
    column: Row = {"name": "v", "type": "int64"} | ({"aggregate": function} if function else {})
    with pytest.raises(yt.YtError, match='Aggregate mode mismatch for column "v"') as caught:
        altered(client, table, column, {"name": "w", "type": "string"})
    assert caught.value.contains_code(316)
