"""Static tables: written whole, put together, read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yt.wrapper as yt
from yt import yson
from yt.wrapper.driver import make_request

from packages.minicluster.tests.conformance.conftest import make_table, over_http
from tests.support.codes import CONCURRENT_TRANSACTION_LOCK_CONFLICT

KEYED = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "string"},
]


def sorted_table(client: Any, path: str, rows: list[dict[str, Any]]) -> str:
    client.create("table", path, attributes={"schema": KEYED})
    client.write_table(path, rows)
    return path


@pytest.mark.thorough
def test_transactions_append_side_by_side(
    client: Any, root: str, transaction: Callable[..., str]
) -> None:
    """Source: server test, integration/tables/test_tables.py (test_shared_locks_parallel_tx)"""
    table = f"{root}/t"
    client.create("table", table)
    client.write_table(table, [{"a": 1}])
    first, second = transaction(), transaction()
    for tx, value in ((first, 2), (second, 4)):
        with client.Transaction(transaction_id=tx):
            client.write_table(f"<append=%true>{table}", [{"a": value}])
            assert [row["a"] for row in client.read_table(table)] == [1, value]
    with pytest.raises(yt.YtError) as refused:
        client.write_table(table, [{"a": 5}])
    assert refused.value.contains_code(CONCURRENT_TRANSACTION_LOCK_CONFLICT)
    assert [row["a"] for row in client.read_table(table)] == [1]
    client.commit_transaction(second)
    assert [row["a"] for row in client.read_table(table)] == [1, 4]
    with client.Transaction(transaction_id=first):
        assert [row["a"] for row in client.read_table(table)] == [1, 2]
    client.commit_transaction(first)
    assert [row["a"] for row in client.read_table(table)] == [1, 4, 2]


@pytest.mark.thorough
def test_a_nested_transaction_appends_to_what_it_saw(
    client: Any, root: str, transaction: Callable[..., str]
) -> None:
    """Source: server test, integration/tables/test_tables.py (test_shared_locks_nested_tx)"""
    table = f"{root}/t"
    client.create("table", table)
    outer = transaction()
    with client.Transaction(transaction_id=outer):
        client.write_table(table, [{"k": 1}])
        inner = transaction()

    def append(tx: str, value: int) -> None:
        with client.Transaction(transaction_id=tx):
            client.write_table(f"<append=%true>{table}", [{"k": value}])

    def seen(tx: str) -> list[int]:
        with client.Transaction(transaction_id=tx):
            return [row["k"] for row in client.read_table(table)]

    append(inner, 2)
    assert (seen(outer), seen(inner)) == ([1], [1, 2])
    append(outer, 3)
    assert (seen(outer), seen(inner)) == ([1, 3], [1, 2])
    append(inner, 4)
    assert (seen(outer), seen(inner)) == ([1, 3], [1, 2, 4])
    client.commit_transaction(inner)
    assert sorted(seen(outer)) == [1, 2, 3, 4]
    client.commit_transaction(outer)
    assert sorted(row["k"] for row in client.read_table(table)) == [1, 2, 3, 4]


def test_tables_are_concatenated(client: Any, root: str) -> None:
    """Source: server test, integration/tables/test_concatenate.py (test_simple_concatenate)"""
    client.write_table(f"{root}/a", [{"key": "x"}])
    client.write_table(f"{root}/b", [{"key": "y"}, {"other": 1}])
    sources = [f"{root}/a", f"{root}/b"]
    expected = [{"key": "x"}, {"key": "y"}, {"other": 1}]

    def rows() -> list[dict[str, Any]]:
        found = client.read_table(f"{root}/all")
        return [{name: row[name] for name in row if row[name] is not None} for row in found]

    client.concatenate(sources, f"{root}/all")
    assert rows() == expected
    client.concatenate(sources, f"<append=%true>{root}/all")
    assert rows() == expected * 2
    assert client.get(f"{root}/all/@row_count") == 6


def test_sorted_tables_stay_sorted(client: Any, root: str) -> None:
    """Source: server test, integration/tables/test_concatenate.py (test_sorted)"""
    first = sorted_table(client, f"{root}/a", [{"k": 1, "v": "x"}, {"k": 2, "v": "y"}])
    second = sorted_table(client, f"{root}/b", [{"k": 3, "v": "z"}])
    union = sorted_table(client, f"{root}/all", [])
    client.concatenate([first, second], union)
    assert client.get(f"{union}/@sorted")
    assert [row["k"] for row in client.read_table(union)] == [1, 2, 3]


def test_a_table_without_a_schema_does_not_stay_sorted(client: Any, root: str) -> None:
    """Source: server test, integration/tables/test_concatenate.py (test_sorted)"""
    for name in ("a", "b", "all"):
        client.write_table(f"<sorted_by=[key]>{root}/{name}", [{"key": name}])
    client.concatenate([f"{root}/b", f"{root}/a"], f"<append=%true>{root}/all")
    assert list(client.read_table(f"{root}/all")) == [{"key": name} for name in ("all", "b", "a")]
    assert not client.get(f"{root}/all/@sorted")
    client.concatenate([f"{root}/b", f"{root}/a"], f"{root}/b")
    assert list(client.read_table(f"{root}/b")) == [{"key": "b"}, {"key": "a"}]


def test_a_table_without_a_schema_takes_that_of_the_sources(client: Any, root: str) -> None:
    """Source: server test, integration/tables/test_concatenate.py (test_infer_schema,
    test_infer_schema_many_columns)"""
    row = {"a": "1", "b": "2"}
    for name in ("x", "y"):
        columns = [{"name": "b", "type": "string"}, {"name": "a", "type": "string"}]
        client.create("table", f"{root}/{name}", attributes={"schema": columns})
        client.write_table(f"{root}/{name}", [row])
    client.create("table", f"{root}/all")
    client.concatenate([f"{root}/x", f"{root}/y"], f"{root}/all")
    assert list(client.read_table(f"{root}/all")) == [row, row]
    assert [column["name"] for column in client.get(f"{root}/all/@schema")] == ["a", "b"]
    assert client.get(f"{root}/all/@schema_mode") == "strong"
    client.write_table(f"{root}/z", [{"c": 1}])
    client.create("table", f"{root}/mixed")
    client.concatenate([f"{root}/x", f"{root}/z"], f"{root}/mixed")
    assert client.get(f"{root}/mixed/@schema_mode") == "weak"
    assert list(client.get(f"{root}/mixed/@schema")) == []


def test_sorted_pieces_go_by_their_keys(client: Any, root: str) -> None:
    """Source: server source, ytlib/api/native/client_cypress_impl.cpp (TNodeConcatenator)"""
    schema = [{"name": "k", "type": "int64", "sort_order": "ascending"}]
    for name, keys in {"late": [3, 4], "early": [1, 2], "none": [], "all": []}.items():
        client.create("table", f"{root}/{name}", attributes={"schema": schema})
        client.write_table(f"{root}/{name}", [{"k": k} for k in keys])
    client.concatenate([f"{root}/late", f"{root}/none", f"{root}/early"], f"{root}/all")
    assert [row["k"] for row in client.read_table(f"{root}/all")] == [1, 2, 3, 4]


def test_nothing_is_concatenated(client: Any, root: str) -> None:
    """Source: server test, integration/misc/test_concatenate.py (test_empty_concatenate)"""
    client.write_table(f"{root}/t", [{"a": 1}])
    client.write_file(f"{root}/f", b"text")
    nothing: dict[str, Any] = {"source_paths": []}
    for path in (f"<append=%true>{root}/t", f"<append=%true>{root}/f"):
        make_request("concatenate", {**nothing, "destination_path": path}, client=client)
    assert list(client.read_table(f"{root}/t")) == [{"a": 1}]
    for path in (f"{root}/t", f"{root}/f"):
        make_request("concatenate", {**nothing, "destination_path": path}, client=client)
    assert list(client.read_table(f"{root}/t")) == []
    assert client.read_file(f"{root}/f").read() == b""


def test_dynamic_tables_are_not_concatenated(client: Any, root: str) -> None:
    """Source: server source, ytlib/api/native/client_cypress_impl.cpp (TNodeConcatenator)"""
    table = make_table(client, f"{root}/dynamic", [{"name": "a", "type": "int64"}])
    client.write_table(f"{root}/t", [{"a": 1}])
    with pytest.raises(yt.YtError, match=f"Destination table {table} is dynamic, concatenation"):
        client.concatenate([f"{root}/t"], table)
    with pytest.raises(yt.YtError, match=f"Source table {table} is dynamic"):
        client.concatenate([table], f"{root}/t")


def test_overlapping_sorted_tables_are_not_concatenated(client: Any, root: str) -> None:
    """Source: server test, integration/tables/test_concatenate.py
    (test_sorted_overlapping_ranges)"""
    first = sorted_table(client, f"{root}/a", [{"k": 1, "v": "x"}, {"k": 3, "v": "y"}])
    second = sorted_table(client, f"{root}/b", [{"k": 2, "v": "z"}])
    union = sorted_table(client, f"{root}/all", [])
    with pytest.raises(yt.YtError):
        client.concatenate([first, second], union)
    assert list(client.read_table(union)) == []


def test_a_column_that_the_destination_does_not_have_is_refused(client: Any, root: str) -> None:
    """Source: server test, integration/tables/test_concatenate.py
    (test_incompatible_schemas)"""
    strict = yson.to_yson_type(KEYED[1:], attributes={"strict": True})
    client.create("table", f"{root}/all", attributes={"schema": strict})
    client.create("table", f"{root}/a", attributes={"schema": [{"name": "w", "type": "string"}]})
    client.write_table(f"{root}/a", [{"w": "x"}])
    with pytest.raises(yt.YtError):
        client.concatenate([f"{root}/a"], f"{root}/all")
    assert client.get(f"{root}/all/@row_count") == 0


def test_a_table_is_written_in_parallel(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/parallel_writer.py (make_parallel_write_request)"""
    client.config["write_parallel"].update({"enable": yson.to_yson_type(True)})
    client.config["write_parallel"].update({"max_thread_count": 2})
    client.config["write_retries"]["chunk_size"] = 1 << 16
    client.config["remote_temp_tables_directory"] = f"{root}/parts"
    rows = [{"n": n, "text": "x" * 100} for n in range(3_000)]
    client.write_table(f"{root}/t", rows)
    assert list(client.read_table(f"{root}/t")) == rows


@over_http
def test_statistics_of_columns_count_the_values_that_are_not_null(client: Any, root: str) -> None:
    """Source: server test, integration/controller/test_columnar_statistics.py;
    client/driver/table_commands.cpp, TGetTableColumnarStatisticsCommand"""
    path = f"{root}/t"
    schema = [{"name": name, "type": "string"} for name in ("a", "b", "c")]
    client.create("table", path, attributes={"schema": schema})
    client.write_table(path, [{"a": "x", "b": "y"}, {"a": "xx"}])
    (found,) = client.get_table_columnar_statistics([yt.TablePath(path, columns=["a", "b"])])
    assert found["column_non_null_value_counts"] == {"a": 2, "b": 1}
    assert found["column_data_weights"] == {"a": 3, "b": 1}
    assert found.get("legacy_chunk_row_count", 0) == 0
