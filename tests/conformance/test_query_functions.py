"""Functions of the query language, as a person types them."""

from __future__ import annotations

from typing import Any

import pytest
import yt.wrapper as yt

from tests.conformance.conftest import Row, connect, make_table

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
    path = make_table(client, f"{home}/ledger", LEDGER)
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
