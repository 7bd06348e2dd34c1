"""Operations on whole tables: merge and sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from yt import yson
from yt.wrapper.errors import YtOperationFailedError

from packages.minicluster.tests.conformance.conftest import (
    Row,
    errors_of,
    make_table,
    over_http,
    within,
)

pytestmark = over_http

KEY: Row = {"name": "k", "type": "int64", "sort_order": "ascending"}
VALUE: Row = {"name": "v", "type": "string"}


def plain(client: Any, path: str, *keys: int) -> str:
    schema = [{"name": "k", "type": "int64"}, VALUE]
    return made(client, path, schema, *keys)


def made(client: Any, path: str, schema: Any, *keys: int) -> str:
    client.create("table", path, attributes={"schema": schema})
    client.write_table(path, [{"k": k, "v": f"{k}"} for k in keys])
    return path


def keys(client: Any, path: str) -> list[int]:
    return [row["k"] for row in client.read_table(path)]


def failure(request_of: Callable[[], Any]) -> list[int]:
    """Return the codes of the errors with which an operation failed."""
    with pytest.raises(YtOperationFailedError) as caught:
        request_of()
    return [inner["code"] for inner in errors_of(caught.value)]


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["unordered", "ordered"])
def test_tables_become_one(client: Any, root: str, mode: str) -> None:
    """Source: documentation, user-guide/data-processing/operations/merge; server test,
    integration/controller/test_merge_operation.py (test_unordered, test_ordered)"""
    paths = [plain(client, f"{root}/{n}", *keys) for n, keys in enumerate([[3, 1], [2], []])]
    out = plain(client, f"{root}/out", 9)
    client.run_merge(paths, out, mode=mode)
    found = keys(client, out)
    assert sorted(found) == [1, 2, 3]
    assert mode == "unordered" or found == [3, 1, 2]
    client.run_merge(paths[1], f"<append=%true>{out}", mode=mode)
    assert sorted(keys(client, out)) == [1, 2, 2, 3]


def test_a_merge_combines_chunks_if_asked(client: Any, root: str) -> None:
    """Source: server test, integration/controller/test_merge_operation.py
    (test_unordered_combine); documentation, the same page (combine_chunks, force_transform)"""
    path = plain(client, f"{root}/t", 1)
    for key in (2, 3):
        client.write_table(f"<append=%true>{path}", [{"k": key, "v": "a"}])
    assert client.get(f"{path}/@chunk_count") == 3
    client.set(f"{path}/@mine", "kept")
    node = client.get(f"{path}/@id")
    client.run_merge(path, path, mode="ordered")
    assert client.get(f"{path}/@chunk_count") == 3
    client.run_merge(path, path, mode="ordered", spec={"combine_chunks": True})
    assert client.get(f"{path}/@chunk_count") == 1
    assert keys(client, path) == [1, 2, 3]
    assert (client.get(f"{path}/@id"), client.get(f"{path}/@mine")) == (node, "kept")


def test_sorted_tables_are_merged_by_their_keys(client: Any, root: str) -> None:
    """Source: server test, integration/controller/test_merge_operation.py (test_sorted)"""
    schema = [KEY, VALUE]
    paths = [made(client, f"{root}/{n}", schema, *ks) for n, ks in enumerate([[1, 4], [2, 3]])]
    out = made(client, f"{root}/out", schema)
    client.run_merge(paths, out, mode="sorted")
    assert keys(client, out) == [1, 2, 3, 4]
    weak = f"{root}/weak"
    client.create("table", weak)
    client.run_merge(paths, weak, mode="sorted", merge_by=["k"])
    assert client.get(f"{weak}/@sorted_by") == ["k"]
    unsorted = plain(client, f"{root}/unsorted", 1)
    assert 216 in failure(lambda: client.run_merge([unsorted], out, mode="sorted"))
    assert keys(client, out) == [1, 2, 3, 4]


def test_a_sort_orders_rows(client: Any, root: str) -> None:
    """Source: documentation, user-guide/data-processing/operations/sort; server test,
    integration/controller/test_sort_operation.py (test_simple_..., test_sort_into_strong)"""
    paths = [plain(client, f"{root}/{n}", *ks) for n, ks in enumerate([[3, 1], [2, 1]])]
    out = f"{root}/out"
    client.create("table", out)
    client.run_sort(paths, out, sort_by=["k"])
    assert keys(client, out) == [1, 1, 2, 3]
    assert client.get(f"{out}/@sorted_by") == ["k"]
    client.run_sort(paths[0], paths[0], sort_by=["v", "k"])
    assert client.get(f"{paths[0]}/@sorted") is not None
    assert keys(client, paths[0]) == [1, 3]


def test_a_sort_into_unique_keys_fails_for_two_of_one_key(client: Any, root: str) -> None:
    """Source: server test, integration/controller/test_sort_operation.py (test_unique_keys...)"""
    schema = yson.to_yson_type([KEY, VALUE], attributes={"unique_keys": True, "strict": True})
    out = made(client, f"{root}/out", schema, 7)
    good, bad = plain(client, f"{root}/good", 2, 1), plain(client, f"{root}/bad", 1, 2, 1)
    assert 306 in failure(lambda: client.run_sort(bad, out, sort_by=["k"]))
    assert keys(client, out) == [7]
    client.run_sort(good, out, sort_by=["k"])
    client.alter_table(out, dynamic=True)
    client.mount_table(out, sync=True)
    assert [row["k"] for row in client.lookup_rows(out, [{"k": 2}])] == [2]


def test_a_column_that_the_output_lacks_fails_the_operation(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/static-schema (strict)"""
    source = plain(client, f"{root}/source", 1)
    out = f"{root}/out"
    client.create("table", out, attributes={"schema": [{"name": "k", "type": "int64"}]})
    failure(lambda: client.run_merge(source, out))
    assert list(client.read_table(out)) == []


def test_an_operation_is_a_part_of_the_transaction(
    client: Any, root: str, transaction: Callable[..., str]
) -> None:
    """Source: documentation, user-guide/storage/transactions (operations in transactions)"""
    source, out = plain(client, f"{root}/source", 1), plain(client, f"{root}/out")
    tx = transaction()
    with within(client, tx):
        client.run_merge(source, out)
        assert keys(client, out) == [1]
    assert keys(client, out) == []
    client.commit_transaction(tx)
    assert keys(client, out) == [1]


def test_a_locked_output_fails_the_preparation(
    client: Any, root: str, transaction: Callable[..., str]
) -> None:
    """Source: server test, integration/controller/test_merge_operation.py; documentation,
    user-guide/storage/transactions (locks)"""
    source, out = plain(client, f"{root}/source", 1), plain(client, f"{root}/out")
    with within(client, transaction()):
        client.lock(out)
    codes = failure(lambda: client.run_merge(source, out))
    assert 216 in codes
    assert 402 in codes


def test_dynamic_tables_are_read_by_operations(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/mapreduce"""
    table = make_table(client, f"{root}/dynamic", [KEY, VALUE])
    client.insert_rows(table, [{"k": 2, "v": "b"}, {"k": 1, "v": "a"}])
    out = plain(client, f"{root}/out")
    client.run_merge(table, out, mode="ordered")
    assert keys(client, out) == [1, 2]


def test_a_range_is_merged(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/ypath (ranges)"""
    source, out = plain(client, f"{root}/source", 1, 2, 3), plain(client, f"{root}/out")
    client.run_merge(f"{source}[#1:#2]", out)
    assert keys(client, out) == [2]
    operation = client.run_merge(source, out, sync=True)
    assert operation.get_attributes(fields=["type", "state"]) == {
        "type": "merge",
        "state": "completed",
    }
