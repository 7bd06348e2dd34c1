"""Functions of the query language, as a person types them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
import yt.wrapper as yt

from packages.minicluster.tests.conformance.conftest import (
    Row,
    connect,
    make_table,
)

LEDGER: list[Row] = [
    {"name": "job", "type": "string", "sort_order": "ascending"},
    {"name": "batch", "type": "int64", "sort_order": "ascending"},
    {"name": "entry", "type": "any"},
]


def entry(rows: int, *, ok: bool, **more: Any) -> Row:
    return {"output": {"rows": rows, "path": "//tmp/out"}, "ok": ok, "seconds": rows / 4, **more}


@pytest.fixture(scope="module")
def ledger(proxy: str, home: str) -> str:
    """Entries of type any, one of them without a value."""
    client = connect(proxy)
    path = make_table(client, f"{home}/ledger-{uuid.uuid4().hex}", LEDGER)
    unsigned = yt.yson.YsonUint64(2**63)
    written = yt.yson.to_yson_type(3, attributes={"unit": "rows"})
    entries: list[Row] = [
        {"job": "a", "batch": 1, "entry": entry(10, ok=True, queues=["//q1", "//q2"])},
        {"job": "a", "batch": 2, "entry": entry(30, ok=False, big=unsigned)},
        {"job": "b", "batch": 1, "entry": entry(5, ok=True, written=written)},
        {"job": "b", "batch": 2, "entry": None},
    ]
    client.insert_rows(path, entries)
    return path


def column(client: Any, table: str, expression: str, rest: str = "") -> list[Any]:
    """Return the values of an expression, by the table's key."""
    found = client.select_rows(f"{expression} as x from [{table}] {rest} limit 100")
    return [row["x"] for row in found]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('try_get_int64(entry, "/output/rows")', [10, 30, 5, None]),
        ('try_get_uint64(entry, "/output/rows")', [10, 30, 5, None]),
        ('try_get_double(entry, "/output/rows")', [10.0, 30.0, 5.0, None]),
        ('try_get_double(entry, "/seconds")', [2.5, 7.5, 1.25, None]),
        ('try_get_int64(entry, "/seconds")', [None] * 4),
        ('try_get_string(entry, "/output/path")', ["//tmp/out"] * 3 + [None]),
        ('try_get_boolean(entry, "/ok")', [True, False, True, None]),
        ('try_get_string(entry, "/ok")', [None] * 4),
        ('try_get_string(entry, "/queues/1")', ["//q2", None, None, None]),
        ('try_get_string(entry, "/queues/2")', [None] * 4),
        ('try_get_any(entry, "/queues")', [["//q1", "//q2"], None, None, None]),
        ('try_get_any(entry, "/output/rows")', [10, 30, 5, None]),
        ('try_get_uint64(entry, "/big")', [None, 2**63, None, None]),
        ('try_get_int64(entry, "/big")', [None] * 4),
        ('try_get_int64(entry, "/written")', [None, None, 3, None]),
        ('try_get_string(entry, "/written/@unit")', [None, None, "rows", None]),
        ('try_get_int64(entry, "/output")', [None] * 4),
        ('try_get_int64(entry, "")', [None] * 4),
    ],
)
def test_values_are_read_out_of_a_column_of_type_any(
    client: Any, ledger: str, expression: str, expected: list[Any]
) -> None:
    """Source: server test, core/unittests/ypath_resolver_ut.cpp (GetInt64 and the others)"""
    assert column(client, ledger, expression) == expected


def test_without_try_a_missing_value_is_an_error(client: Any, ledger: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (extracting data)"""
    first = 'where job = "a" and batch = 1'
    assert column(client, ledger, 'get_int64(entry, "/output/rows")', first) == [10]
    assert column(client, ledger, 'get_any(entry, "/output")', first) == [
        {"rows": 10, "path": "//tmp/out"}
    ]
    for missing in ('get_int64(entry, "/nothing")', 'get_string(entry, "/ok")'):
        with pytest.raises(yt.YtError, match="is not found at YPath"):
            column(client, ledger, missing, first)
    null = 'where job = "b" and batch = 2'
    assert column(client, ledger, 'get_int64(entry, "/output/rows")', null) == [None]


@pytest.mark.parametrize("path", ["//", "/", "output", "/output/", "/@@"])
def test_a_wrong_path_is_an_error(client: Any, ledger: str, path: str) -> None:
    """Source: server test, core/unittests/ypath_resolver_ut.cpp (InvalidYPath)"""
    with pytest.raises(yt.YtError, match="Unexpected YPath token"):
        column(client, ledger, f'try_get_int64(entry, "{path}")', "where batch = 1")


def test_values_read_out_are_summed_compared_and_ordered(client: Any, ledger: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (extracting data)"""
    rows = 'try_get_int64(entry, "/output/rows")'
    assert list(
        client.select_rows(
            f"job, sum({rows}) as total, max({rows}) as most from [{ledger}] "
            "group by job order by job limit 9"
        )
    ) == [{"job": "a", "total": 40, "most": 30}, {"job": "b", "total": 5, "most": 5}]
    assert column(client, ledger, "batch", f"where {rows} >= 10") == [1, 2]
    assert column(client, ledger, rows, f"order by {rows} desc") == [30, 10, 5, None]


def test_only_columns_of_type_any_have_paths(client: Any, ledger: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (extracting data)"""
    with pytest.raises(yt.YtError, match=r"(?i)type"):
        column(client, ledger, 'try_get_int64(job, "/x")')


def test_a_value_of_type_any_is_converted(client: Any, ledger: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (converting types)"""
    first = 'where job = "a" and batch = 1'
    for expression, expected in (
        ('int64(get_any(entry, "/output/rows"))', 10),
        ('uint64(get_any(entry, "/output/rows"))', 10),
        ('double(get_any(entry, "/output/rows"))', 10.0),
        ('boolean(get_any(entry, "/ok"))', True),
        ('string(get_any(entry, "/output/path"))', "//tmp/out"),
    ):
        assert column(client, ledger, expression, first) == [expected]
    with pytest.raises(yt.YtError, match="Cannot convert value"):
        column(client, ledger, "int64(entry)", first)


ONE_ROW: list[Row] = [
    {"name": "i", "type": "int64", "sort_order": "ascending"},
    {"name": "s", "type": "string"},
    {"name": "n", "type": "int64"},
]


@pytest.fixture(scope="module")
def one_row(proxy: str, home: str) -> str:
    """A table of one row, to compute with; `n` is null."""
    client = connect(proxy)
    path = make_table(client, f"{home}/one-row-{uuid.uuid4().hex}", ONE_ROW)
    client.insert_rows(path, [{"i": 1446325284, "s": "abc"}])
    return path


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("'abc' like ''", False),
        ("'' like '%'", True),
        ("'ab.cd.efgh' like '__.__.____'", True),
        ("'ab.cd-efgh' like '__.__.____'", False),
        ("'a' || 'b' || 'c' like '_'", False),
        ("'abc' like '_' || '_' || 'c'", True),
        ("'$[](){}' like '$[](){}'", True),
        ("'ABC' like 'abc'", False),
        ("'ABC' ilike 'abc'", True),
        ("'ABC' not ilike '%b%'", False),
        ("'abcdef' like 'a_c_%f'", True),
        (r"'one\n\ttwo' like 'one%two'", True),
        ("'q' not like 'x_' escape 'x'", True),
        ("'a' like '._' escape '.'", False),
        (r"'_' like '\\_'", True),
        (r"'a' like '\\_'", False),
        (r"'\\q' like '\\_' escape ''", True),
        ("'жук' like '_ук'", True),
        ("s like 'a%'", True),
        ("s like null", None),
    ],
)
def test_strings_are_compared_with_patterns(
    client: Any, one_row: str, condition: str, expected: bool | None
) -> None:
    """Source: server test, library/query/unittests/ql_expressions_ut.cpp (LikeExpressionTest)"""
    assert column(client, one_row, condition) == [expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("case when i > 0 then 'plus' when i < 0 then 'minus' else 'zero' end", "plus"),
        ("case when i < 0 then 1 when s = 'abc' then 2 end", 2),
        ("case when i < 0 then 1 end", None),
        ("case s when 'x' then 1 when 'abc' then 2 else 3 end", 2),
        ("case s when 'x' then 1u else 3u end", 3),
        ("case when n > 0 then 1 else 2 end", 2),
    ],
)
def test_cases(client: Any, one_row: str, expression: str, expected: Any) -> None:
    """Source: server test, library/query/base/parser.ypp (case expressions)"""
    assert column(client, one_row, expression) == [expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("cast(1 as Int64)", 1),
        ("cast(i as Uint64)", 1446325284),
        ("cast(1u as Int64)", 1),
        ("cast(s as String)", "abc"),
        ("cast(1 as String)", "1"),
        ("cast(n as [Int64?])", None),
        ('cast("1" as [Optional<Double>])', 1.0),
    ],
)
def test_casts(client: Any, one_row: str, expression: str, expected: Any) -> None:
    """Source: server test, library/query/unittests/v2/ql_cast_ut.cpp (Basic)"""
    query = f"{expression} as x from [{one_row}]"
    assert list(client.select_rows(query, expression_builder_version=2)) == [{"x": expected}]


def test_a_null_is_cast_to_an_optional_type_only(client: Any, one_row: str) -> None:
    """Source: server test, library/query/unittests/v2/ql_cast_ut.cpp (Malformed)"""
    query = f"cast(n as Int64) as x from [{one_row}]"
    with pytest.raises(yt.YtError, match="null value during cast"):
        list(client.select_rows(query, expression_builder_version=2))


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("hour", 1446325200),
        ("day", 1446249600),
        ("week", 1445817600),
        ("month", 1443657600),
        ("quarter", 1443657600),
        ("year", 1420070400),
    ],
)
def test_times_are_rounded_down(client: Any, one_row: str, unit: str, expected: int) -> None:
    """Source: server test, library/query/unittests/ql_expressions_ut.cpp
    (EvaluateTimestampExpressionTest)"""
    assert column(client, one_row, f"timestamp_floor_{unit}(i)") == [expected]
    assert column(client, one_row, f"timestamp_floor_{unit}(n)") == [None]


def test_times_are_rounded_in_a_time_zone(client: Any, one_row: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (working with dates)"""
    # 2015-11-01 00:01:24 in Moscow
    floor = 'timestamp_floor_month_tz(i, "Europe/Moscow")'
    assert column(client, one_row, floor) == [1446325200]


def test_times_are_formatted(client: Any, one_row: str) -> None:
    """Source: server test, library/query/unittests/ql_expressions_ut.cpp
    (EvaluateTimestampExpressionTest)"""
    written = "format_timestamp(i, '%Y-%m-%dT%H:%M:%S')"
    assert column(client, one_row, written) == ["2015-10-31T21:01:24"]
    with pytest.raises(yt.YtError, match="smaller than minimal"):
        column(client, one_row, "format_timestamp(-62135596801, '')")


HASHES = {
    "0": 3315701238936582721,
    "-42": 16397089221717914258,
    "true": 933529381690826619,
    "n": 3315701238936582721,
    "''": 18213160808259878197,
    "s": 8869018260447729478,
    "'hello_world'": 2025645983239056574,
    f"'{'x' * 16}'": 1018863032141701326,
    f"'{'y' * 17}'": 10873447293606436884,
    f"'{('abcdefghijklmnopqrstuvwxyz0123456789' * 2)[:33]}'": 8396789985032708545,
    f"'{('abcdefghijklmnopqrstuvwxyz0123456789' * 6)[:200]}'": 16806011184363067985,
    "1, 'abc'": 12535759425065966635,
    "null, 'abc'": 5695727612511534157,
    "3, 2, 1": 14156295371990732579,
}
"""Computed by a cluster for SPYT's own test of bucketing (HashFunctionTest.scala)."""


@pytest.mark.parametrize("arguments", HASHES)
def test_farm_hash(client: Any, one_row: str, arguments: str) -> None:
    """Source: observed, ytsaurus-spyt HashFunctionTest.scala (values that a cluster computed)"""
    assert column(client, one_row, f"farm_hash({arguments})") == [HASHES[arguments]]


SALES: list[Row] = [
    {"name": "shop", "type": "int64", "sort_order": "ascending"},
    {"name": "day", "type": "int64", "sort_order": "ascending"},
    {"name": "item", "type": "string"},
    {"name": "price", "type": "int64"},
]
SHOPS: list[Row] = [
    {"name": "id", "type": "int64", "sort_order": "ascending"},
    {"name": "city", "type": "string"},
    {"name": "price", "type": "int64"},
]


@pytest.fixture(scope="module")
def sales(proxy: str, home: str) -> str:
    client = connect(proxy)
    path = make_table(client, f"{home}/sales-{uuid.uuid4().hex}", SALES, pivot_keys=[[], [2]])
    rows = [
        (1, 1, "tea", 30),
        (1, 2, "cup", 50),
        (1, 3, "tea", 20),
        (1, 4, None, None),
        (2, 1, "tea", 35),
        (3, 1, "pot", 90),
    ]
    names = [column["name"] for column in SALES]
    client.insert_rows(path, [dict(zip(names, row, strict=True)) for row in rows])
    return path


@pytest.fixture(scope="module")
def shops(proxy: str, home: str) -> str:
    """Shop 3 is missing; shop 4 sells nothing."""
    client = connect(proxy)
    path = make_table(client, f"{home}/shops-{uuid.uuid4().hex}", SHOPS)
    rows = [{"id": 1, "city": "Perm"}, {"id": 2, "city": "Omsk"}, {"id": 4, "city": "Tver"}]
    client.insert_rows(path, rows)
    return path


def grouped(client: Any, table: str, aggregate: str) -> list[Any]:
    query = f"{aggregate} as x from [{table}] group by shop order by shop limit 9"
    return [row["x"] for row in client.select_rows(query)]


def test_the_argument_of_an_extreme(client: Any, sales: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (aggregation)"""
    assert grouped(client, sales, "argmax(item, price)") == ["cup", "tea", "pot"]
    assert grouped(client, sales, "argmin(day, price)") == [3, 1, 1]


def test_first_values(client: Any, sales: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (aggregation)"""
    first = grouped(client, sales, "first(item)")
    assert first[0] in ("tea", "cup")
    assert first[1:] == ["tea", "pot"]


def test_cardinality_of_a_few_values(client: Any, sales: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (aggregation)"""
    query = f"cardinality(day) as days, cardinality(item) as items from [{sales}] "
    assert list(client.select_rows(query + "where price > 0 group by 1")) == [
        {"days": 3, "items": 3}
    ]


def test_a_table_is_joined_by_its_key(client: Any, sales: str, shops: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (FROM ... JOIN)"""
    query = (
        f"s.day as day, c.city as city from [{sales}] as s join [{shops}] as c on s.shop = c.id "
        "where s.item = 'tea' order by city, day limit 9"
    )
    assert list(client.select_rows(query)) == [
        {"day": 1, "city": "Omsk"},
        {"day": 1, "city": "Perm"},
        {"day": 3, "city": "Perm"},
    ]


def test_a_left_join_keeps_rows_without_a_match(client: Any, sales: str, shops: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (FROM ... JOIN)"""
    query = (
        f"s.shop as shop, c.city as city from [{sales}] as s left join [{shops}] as c "
        "on s.shop = c.id where s.day = 1 order by shop limit 9"
    )
    assert list(client.select_rows(query)) == [
        {"shop": 1, "city": "Perm"},
        {"shop": 2, "city": "Omsk"},
        {"shop": 3, "city": None},
    ]


def test_joined_rows_are_filtered_before_the_join(client: Any, sales: str, shops: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (FROM ... JOIN)"""
    query = (
        f"s.shop as shop, c.city as city from [{sales}] as s left join [{shops}] as c "
        "on s.shop = c.id and c.city != 'Perm' where s.day = 1 order by shop limit 2"
    )
    assert [row["city"] for row in client.select_rows(query)] == [None, "Omsk"]


def test_join_using_a_common_column(client: Any, sales: str, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_query.py (test_group_by_disjoint)"""
    columns = [SALES[0], {"name": "boss", "type": "string"}]
    named = make_table(client, f"{root}/named", columns)
    client.insert_rows(named, [{"shop": 1, "boss": "Ann"}, {"shop": 2, "boss": "Bob"}])
    query = (
        f"boss, sum(price) as total from [{sales}] join [{named}] using shop "
        "group by boss order by boss limit 9"
    )
    assert list(client.select_rows(query)) == [
        {"boss": "Ann", "total": 100},
        {"boss": "Bob", "total": 35},
    ]


def test_a_join_on_expressions(client: Any, sales: str, shops: str) -> None:
    """Source: server test, integration/dynamic_tables/test_query.py (test_keys_coordination)"""
    query = f"shop, city from [{sales}] join [{shops}] on shop + 1 = id where shop = 1 limit 1"
    assert list(client.select_rows(query)) == [{"shop": 1, "city": "Omsk"}]


def test_a_join_has_to_use_the_key(client: Any, sales: str, shops: str) -> None:
    """Source: server test, integration/dynamic_tables/test_query.py (test_inefficient_join)"""
    query = f"s.day as day from [{sales}] as s join [{shops}] as c on s.item = c.city"
    with pytest.raises(yt.YtError, match="Foreign table key is not used"):
        list(client.select_rows(query))
    assert list(client.select_rows(query, allow_join_without_index=True)) == []
