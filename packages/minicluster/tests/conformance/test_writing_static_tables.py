"""Static tables written in bulk: sorted by what the path says, with its schema, within limits."""

from __future__ import annotations

from typing import Any

import pytest
from yt.wrapper.errors import YtResolveError, YtResponseError

from tests.support import codes


def sorted_by(path: str, *names: str, append: bool = False) -> str:
    return f"<sorted_by=[{';'.join(names)}];append=%{str(append).lower()}>{path}"


def test_rows_are_sorted_by_what_the_path_says(client: Any, root: str) -> None:
    """Source: server test, integration/tests/test_tables.py (test_sorted_write_table)"""
    table = f"{root}/t"
    assert not client.exists(table)
    client.write_table(sorted_by(table, "key"), [{"key": k, "v": str(k)} for k in range(4)])
    assert client.get(f"{table}/@sorted")
    assert client.get(f"{table}/@sorted_by") == ["key"]
    assert client.get(f"{table}/@schema_mode") == "weak"
    assert list(client.read_table(f"{table}[1:3]")) == [{"key": k, "v": str(k)} for k in (1, 2)]


def test_an_unsorted_append_makes_the_table_unsorted(client: Any, root: str) -> None:
    """Source: server test, integration/tests/test_tables.py (test_sorted_write_table)"""
    table = f"{root}/t"
    client.write_table(sorted_by(table, "key"), [{"key": 1}])
    client.write_table(f"<append=%true>{table}", [{"key": 0}])
    assert not client.get(f"{table}/@sorted")
    with pytest.raises(YtResolveError):
        client.get(f"{table}/@sorted_by")
    assert list(client.read_table(table)) == [{"key": 1}, {"key": 0}]


def test_a_sorted_append_keeps_the_order(client: Any, root: str) -> None:
    """Source: server test, integration/tests/test_tables.py (test_append_sorted_simple,
    test_append_sorted_order_violated)"""
    table = f"{root}/t"
    client.write_table(sorted_by(table, "a", "b"), [{"a": 0, "b": 0}, {"a": 0, "b": 1}])
    client.write_table(sorted_by(table, "a", "b", append=True), [{"a": 1, "b": 0}])
    assert client.get(f"{table}/@sorted_by") == ["a", "b"]
    assert client.get(f"{table}/@row_count") == 3
    with pytest.raises(YtResponseError) as caught:
        client.write_table(sorted_by(table, "a", "b", append=True), [{"a": 0, "b": 5}])
    assert caught.value.contains_code(codes.SORT_ORDER_VIOLATION)


def test_a_sorted_append_may_leave_keys_out_but_not_add_any(client: Any, root: str) -> None:
    """Source: server test, integration/tests/test_tables.py
    (test_append_sorted_with_less_key_columns, test_append_sorted_with_more_key_columns,
    test_append_sorted_with_different_key_columns)"""
    table = f"{root}/t"
    client.write_table(sorted_by(table, "a", "b"), [{"a": 0, "b": 0}, {"a": 0, "b": 1}])
    client.write_table(sorted_by(table, "a", append=True), [{"a": 1, "b": 1}, {"a": 2, "b": 0}])
    assert client.get(f"{table}/@sorted_by") == ["a"]
    assert client.get(f"{table}/@row_count") == 4
    for names in (("a", "b"), ("b",)):
        with pytest.raises(YtResponseError, match="Key columns mismatch"):
            client.write_table(sorted_by(table, *names, append=True), [{"a": 3, "b": 3}])


def test_a_sorted_append_to_unsorted_rows_is_refused(client: Any, root: str) -> None:
    """Source: server test, integration/tests/test_tables.py (test_append_sorted_to_unsorted)"""
    table = f"{root}/t"
    client.write_table(table, [{"a": 2}, {"a": 1}])
    with pytest.raises(YtResponseError, match="Key columns mismatch"):
        client.write_table(sorted_by(table, "a", append=True), [{"a": 3}])


def test_unsorted_rows_are_refused(client: Any, root: str) -> None:
    """Source: server test, integration/tests/test_tables.py (test_append_sorted_order_violated)"""
    with pytest.raises(YtResponseError) as caught:
        client.write_table(sorted_by(f"{root}/t", "a"), [{"a": "2"}, {"a": "1"}])
    assert caught.value.contains_code(codes.SORT_ORDER_VIOLATION)


def test_sorted_by_agrees_with_a_schema(client: Any, root: str) -> None:
    """Source: server source, ytlib/table_client/table_upload_options.cpp"""
    table = f"{root}/t"
    columns = [{"name": "a", "type": "int64", "sort_order": "ascending"}]
    client.create("table", table, attributes={"schema": columns})
    client.write_table(sorted_by(table, "a"), [{"a": 1}])
    with pytest.raises(YtResponseError, match='"sorted_by" must be compatible with table schema'):
        client.write_table(sorted_by(table, "b"), [{"a": 1}])


def test_a_path_may_bring_a_schema(client: Any, root: str) -> None:
    """Source: server test, integration/tests/test_tables.py (test_schemaful_write)"""
    table = f"{root}/t"
    client.create("table", table)
    with_schema = f"schema=[{{name=key;type=int64;sort_order=ascending}}]>{table}"
    with pytest.raises(YtResponseError, match='"sorted_by" and "schema" are not compatible'):
        client.write_table(f"<sorted_by=[a];{with_schema}", [{"key": 1}])
    client.write_table(f"<{with_schema}", [{"key": 0}, {"key": 1}])
    assert client.get(f"{table}/@schema_mode") == "strong"
    client.write_table(f"<append=%true>{table}", [{"key": 4}])
    assert list(client.read_table(table)) == [{"key": 0}, {"key": 1}, {"key": 4}]
    client.write_table(f"<schema=[{{name=key;type=any}}]>{table}", [{"key": "x"}])
    assert client.get(f"{table}/@row_count") == 1
    assert not client.get(f"{table}/@sorted")


def test_a_row_is_at_most_16_megabytes_long_by_default(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/static-tables (limitations: max_row_weight)"""
    rows = [{"data": "x" * (17 << 20)}]
    with pytest.raises(YtResponseError, match="Row weight is too large") as caught:
        client.write_table(f"{root}/t", rows)
    assert caught.value.contains_code(codes.ROW_WEIGHT_LIMIT_EXCEEDED)
    client.write_table(f"{root}/t", rows, table_writer={"max_row_weight": 32 << 20})
    assert client.get(f"{root}/t/@row_count") == 1
