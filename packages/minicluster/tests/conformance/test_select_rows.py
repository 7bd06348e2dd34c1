"""Queries. All sources are in user-guide/dynamic-tables/dyn-query-language unless they say so."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
import yt.wrapper as yt

from packages.minicluster.tests.conformance.conftest import Row, make_table, over_http

COLUMNS: list[Row] = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "l", "type": "string", "sort_order": "ascending"},
    {"name": "n", "type": "int64"},
    {"name": "d", "type": "double"},
    {"name": "odd name", "type": "string"},
]
ROWS: list[Row] = [
    {"k": k, "l": letter, "n": k * 10 if k else None, "d": k / 2, "odd name": f"{k}{letter}"}
    for k in range(5)
    for letter in "ab"
]


@pytest.fixture(scope="module")
def table(proxy: str, home: str) -> str:
    """Two tablets, so that answers are put together."""
    from packages.minicluster.tests.conformance.conftest import connect

    client = connect(proxy)
    path = make_table(client, f"{home}/selected-{uuid.uuid4().hex}", COLUMNS, pivot_keys=[[], [2]])
    client.insert_rows(path, ROWS)
    return path


def test_an_asterisk_stands_for_all_columns(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (SELECT)"""
    assert list(client.select_rows(f"* from [{table}] limit 100")) == ROWS


def test_a_query_may_begin_with_select(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (subqueries)"""
    assert list(client.select_rows(f"select * from [{table}] limit 100")) == ROWS


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("k = 3", {3}),
        ("k != 3", {0, 1, 2, 4}),
        ("k > 2 and k <= 4", {3, 4}),
        ("k < 1 or k >= 4", {0, 4}),
        ("not k < 3", {3, 4}),
        ("k between 1 and 3", {1, 2, 3}),
        ("k in (1, 4, 9)", {1, 4}),
        ('(k, l) in ((1, "a"), (2, "z"))', {1}),
        ('(k, l) >= (3, "b")', {3, 4}),
        ("k % 2 = 1", {1, 3}),
        ("k * 2 + 1 = 7", {3}),
        ("-k = -2", {2}),
        ("k & 1 = 1", {1, 3}),
        ("d = 1.5", {3}),
        ('[odd name] = "2b"', {2}),
        ("k = 1 and n = 999", set()),
    ],
)
def test_conditions(client: Any, table: str, condition: str, expected: set[int]) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (expression syntax)"""
    found = client.select_rows(f"k from [{table}] where {condition}")
    assert {row["k"] for row in found} == expected


def test_expressions_are_named(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (synonyms)"""
    query = f"k + 1 as next, [odd name] from [{table}] where k = 1"
    assert list(client.select_rows(query)) == [
        {"next": 2, "odd name": "1a"},
        {"next": 2, "odd name": "1b"},
    ]


def test_names_given_are_used_everywhere(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (synonyms)"""
    query = f"half from [{table}] where half = 2 group by k / 2 as half"
    assert list(client.select_rows(query)) == [{"half": 2}]


def test_a_table_has_an_alias(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (FROM; IDs)"""
    query = f't.n as n from [{table}] as t where t.k = 1 and t.l = "a"'
    assert list(client.select_rows(query)) == [{"n": 10}]


def test_under_an_alias_a_column_has_no_other_name(client: Any, table: str) -> None:
    """Source: server test, library/query/base/query_preparer.cpp (the table's name in a reference
    is the alias)"""
    with pytest.raises(yt.YtError, match="Undefined reference"):
        list(client.select_rows(f"n from [{table}] as t"))
    (row,) = client.select_rows(f't.k, t.n from [{table}] as t where t.k = 1 and t.l = "a"')
    assert row == {"t.k": 1, "t.n": 10}


def test_order_and_limit(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (ORDER BY)"""
    query = f"k, l from [{table}] order by k desc, l limit 3"
    assert [(row["k"], row["l"]) for row in client.select_rows(query)] == [
        (4, "a"),
        (4, "b"),
        (3, "a"),
    ]


def test_a_limit_alone_follows_the_key(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (LIMIT)"""
    found = client.select_rows(f"k, l from [{table}] limit 5")
    assert [(row["k"], row["l"]) for row in found] == [(row["k"], row["l"]) for row in ROWS[:5]]


def test_an_offset_skips(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (OFFSET)"""
    query = f'k from [{table}] where l = "a" order by k offset 2 limit 2'
    assert [row["k"] for row in client.select_rows(query)] == [2, 3]


def test_pages_go_on_from_the_last_key(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (pagination)"""
    found: list[Row] = []
    condition = "true"
    while page := list(
        client.select_rows(f"k, l from [{table}] where {condition} order by k, l limit 4")
    ):
        found += page
        condition = f'(k, l) > ({page[-1]["k"]}, "{page[-1]["l"]}")'
    assert found == [{"k": row["k"], "l": row["l"]} for row in ROWS]


def test_aggregates_of_groups(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (GROUP BY; examples)"""
    query = (
        "odd, sum(1) as count, sum(n) as total, min(k) as least, max(k) as most, avg(k) as mean "
        f"from [{table}] group by k % 2 as odd order by odd limit 9"
    )
    assert list(client.select_rows(query)) == [
        {"odd": 0, "count": 6, "total": 120, "least": 0, "most": 4, "mean": 2.0},
        {"odd": 1, "count": 4, "total": 80, "least": 1, "most": 3, "mean": 2.0},
    ]


def test_all_rows_are_one_group(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (examples)"""
    assert list(client.select_rows(f"sum(1) as c from [{table}] group by 1")) == [{"c": 10}]
    nothing = f"sum(1) as c from [{table}] where k > 99 group by 1"
    assert list(client.select_rows(nothing)) == []


def test_groups_are_filtered(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (HAVING)"""
    query = f"k from [{table}] group by k having sum(n) > 60 order by k limit 9"
    assert [row["k"] for row in client.select_rows(query)] == [4]


def test_nulls_are_told_apart(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (functions)"""
    query = f'k, if_null(n, -1) as n from [{table}] where is_null(n) and l = "a"'
    assert list(client.select_rows(query)) == [{"k": 0, "n": -1}]


def test_a_null_is_less_than_any_value(client: Any, table: str) -> None:
    """Source: documentation, user-guide/storage/static-schema (supported column types)"""
    query = f'k from [{table}] where l = "a" order by n limit 2'
    assert [row["k"] for row in client.select_rows(query)] == [0, 1]


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("k from [{table}] where", "query"),
        ("nothing from [{table}]", "nothing"),
        ('k from [{table}] where k = "text"', "type"),
        ("k from [{table}] where k + 1", "boolean"),
        ("k from [{table}] order by k", "LIMIT"),
        ("n from [{table}] group by k", "n"),
    ],
)
def test_wrong_queries_are_refused(client: Any, table: str, query: str, complaint: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (syntax; typing)"""
    with pytest.raises(yt.YtError, match=f"(?i){complaint}"):
        list(client.select_rows(query.format(table=table)))


@over_http
def test_a_query_tells_how_much_it_read(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (execution statistics)"""
    statistics: dict[str, Any] = {}
    query = f"k from [{table}] where n > 10 order by k limit 4"
    assert len(list(client.select_rows(query, response_parameters=statistics))) == 4
    assert statistics["rows_read"] >= len(ROWS)
    assert statistics["data_weight_read"] > 0
    assert not statistics["incomplete_input"]
    assert "read_time" in statistics


def test_only_dynamic_tables_are_queried(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (overview)"""
    client.write_table(f"{root}/static", [{"a": 1}])
    for path in (f"{root}/static", f"{root}/none"):
        with pytest.raises(yt.YtError):
            list(client.select_rows(f"* from [{path}]"))


def test_a_query_reads_no_more_rows_than_its_limit(client: Any, table: str) -> None:
    """Source: server source, ytlib/api/native/client_dynamic_tables_impl.cpp (DoSelectRowsOnce)"""
    query = f"max(n) as most from [{table}] group by 1 as one"
    assert list(client.select_rows(query, input_row_limit=2**40)) == [{"most": 40}]
    with pytest.raises(yt.YtError, match="Query terminated prematurely due to excessive input"):
        list(client.select_rows(query, input_row_limit=1))
