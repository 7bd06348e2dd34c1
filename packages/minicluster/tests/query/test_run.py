"""`select_rows`: the part of the query language that clients use, and the refusal of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.query import Statistics
from minicluster.query import select as run_query
from minicluster.rows import wire
from packages.minicluster.tests.support.tables_lab import PLAIN, select, table, write
from tests.support import codes

T, Q = "//tmp/t", "//tmp/queue"
COLUMNS = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "s", "type": "string"},
    {"name": "i", "type": "int64"},
    {"name": "u", "type": "uint64"},
    {"name": "d", "type": "double"},
    {"name": "b", "type": "boolean"},
    {"name": "any", "type": "any"},
]
ROWS: list[dict[str, Any]] = [
    {"k": 1, "s": "a", "i": 10, "u": 1, "d": 0.5, "b": True, "any": [1, {"x": 2}]},
    {"k": 2, "s": "b", "i": -7, "u": 2**64 - 1, "d": 1.5, "b": False},
    {"k": 3, "s": "a", "i": 30, "u": 3, "d": 2.5, "b": True},
    {"k": 4},
]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    cluster = Cluster()
    table(cluster, T, COLUMNS)
    write(cluster, T, *ROWS)
    table(cluster, Q, PLAIN, tablet_count=2)
    write(cluster, Q, *({"a": i, "$tablet_index": i % 2} for i in range(6)))
    return cluster


def keys(cluster: Cluster, condition: str) -> list[int]:
    return [row["k"] for row in select(cluster, f"k from [{T}] where {condition}")]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("k = 1", [1]),
        ("k != 1", [2, 3, 4]),
        ("k <> 1 and k < 4", [2, 3]),
        ("k >= 2 and k <= 3", [2, 3]),
        ("k > 3 or s = 'b'", [2, 4]),
        ("not s = 'a'", [2, 4]),
        ("not not s = 'a'", [1, 3]),
        ("k in (1, 3, 99)", [1, 3]),
        ("k not in (1, 3)", [2, 4]),
        ("k between 2 and 3", [2, 3]),
        ("k not between 2 and 3", [1, 4]),
        ("s is null", [4]),
        ("s is not null", [1, 2, 3]),
        ("is_null(s) or b", [1, 3, 4]),
        ("s = null", [4]),
        ("i < 0", [2, 4]),
        ("i <= #", [4]),
        ("i + k * 10 = 20", [1]),
        ("(i + k) * 10 = 110", [1]),
        ("i / 4 = -1", [2]),
        ("i % 4 = -3", [2]),
        ("-i = 7", [2]),
        ("u > 3u", [2]),
        ("u > 3", [2]),
        ("u > i", [2, 3][:1]),
        ("d > 1", [2, 3]),
        ("d = 5e-1", [1]),
        ("d = 1.5", [2]),
        ("(k & 1) = 1", [1, 3]),
        ("(k << 1) = 4", [2]),
        ("(s, k) in (('a', 1), ('b', 3))", [1]),
        ("(s, k) > ('a', 2)", [2, 3]),
        ("if(b, k, 0) > 0", [1, 3]),
        ("if_null(s, 'z') = 'z'", [4]),
        ("b", [1, 3]),
        ("true", [1, 2, 3, 4]),
        ("%false", []),
        ("null", []),
        ("is_prefix('a', s)", [1, 3]),
        ("is_substr('b', s)", [2]),
        ("length(s) = 1 and lower(s) = 'b'", [2]),
        ("concat(s, 'x') = 'ax' and s || 'x' = 'ax'", [1, 3]),
        ("int64(d) = 2", [3]),
        ("double(i) / 4 = 2.5", [1]),
        ("1 = k", [1]),
        ("k = 1 and k = 2", []),
        ("[k] = 2", [2]),
        ("d = .5", [1]),
        ("s like '_'", [1, 2, 3]),
        ("s ilike 'A%' and s not like 'A%'", [1, 3]),
        ("not s like 'a'", [2]),
        ("case s when 'a' then i when null then 30 else 0 end = 30", [3, 4]),
        ("case when b then k when s = 'b' then 20 end > 2", [2, 3]),
        ("case when b then # end is null", [1, 2, 3, 4]),
        ("coalesce(i, 0) = 0", [4]),
        ("cast(d as [int64?]) = 1", [2]),
        ("cast(k as [Double?]) / 2 = 1.5", [3]),
        ("cast(cast(k as string) as uint64) = 2u", [2]),
        ("cast(i as [Optional<String>]) = '-7'", [2]),
        ("parse_int64('1u') = k and parse_double('1') = 1.", [1]),
    ],
)
def test_conditions(cluster: Cluster, condition: str, expected: list[int]) -> None:
    assert keys(cluster, condition) == expected


def test_everything_comes_as_it_was_written(cluster: Cluster) -> None:
    rows = select(cluster, f"* from [{T}]")
    assert rows[0]["any"] == [1, {b"x": 2}]
    assert rows[1] | {"any": None} == {
        "k": 2,
        "s": b"b",
        "i": -7,
        "u": 2**64 - 1,
        "d": 1.5,
        "b": False,
        "any": None,
    }
    assert set(rows[3]) == {column["name"] for column in COLUMNS}


def test_the_query_of_spyt(cluster: Cluster) -> None:
    cluster.cypress.create("queue_consumer", "//tmp/c")
    cluster.tables.mount("//tmp/c")
    cluster.queues.register(Q, "//tmp/c", True)
    cluster.queues.advance("//tmp/c", Q, 1, None, 2)
    query = f'* from [//tmp/c] where queue_cluster = "{cluster.name}" and queue_path = "{Q}"'
    (row,) = select(cluster, query)
    assert (row["partition_index"], row["offset"]) == (1, 2)
    assert select(cluster, query.replace(Q, Q + "/")) == []


def test_projections_and_their_types(cluster: Cluster) -> None:
    rowset = run_query(
        cluster.tables,
        f"t.k as x, t.k + 1, t.u, 'text' as t, t.d * 2 as dd, t.s from [{T}] as t where x = 1",
    )
    assert [(column.name, column.wire_type) for column in rowset.columns] == [
        ("x", wire.INT64),
        ("(t.k) + (1)", wire.INT64),
        ("t.u", wire.UINT64),
        ("t", wire.STRING),
        ("dd", wire.DOUBLE),
        ("t.s", wire.STRING),
    ]
    (row,) = rowset.to_dicts()
    assert row is not None
    assert list(row.values()) == [1, 2, 1, b"text", 1.0, b"a"]


def test_machine_integers_wrap(cluster: Cluster) -> None:
    (row,) = select(
        cluster,
        f"u + 1 as over, 0u - 1u as under, 9223372036854775807 + k as top from [{T}] where k = 2",
    )
    assert row == {"over": 0, "under": 2**64 - 1, "top": -(2**63) + 1}


def test_strings_with_escapes(cluster: Cluster) -> None:
    (row,) = select(
        cluster,
        rf"""'it\'s' as a, "\x41\n\\" as b, "строка" as c from [{T}] where k = 1""",
    )
    assert row == {"a": b"it's", "b": b"A\n\\", "c": "строка".encode()}


def test_half_a_keyword_is_a_name(cluster: Cluster) -> None:
    """SPYT's event log has a column `order` (YtEventLogFsInputStream), without brackets."""
    path = "//tmp/halves"
    names = ("order", "group", "by", "totals")
    columns = [{"name": name, "type": "int64"} for name in names]
    table(cluster, path, [{**columns[0], "sort_order": "ascending"}, *columns[1:]])
    write(cluster, path, *(dict.fromkeys(names, n) for n in range(4)))
    query = f"order, sum(by) as s from [{path}] where order > 0 and order <= 2 and group = totals"
    rows = select(cluster, f"{query} group  by order ORDER\nBY order desc limit 9")
    assert rows == [{"order": 2, "s": 2}, {"order": 1, "s": 1}]


def test_order_offset_and_limit(cluster: Cluster) -> None:
    def found(tail: str) -> list[int]:
        return [row["k"] for row in select(cluster, f"k from [{T}] {tail}")]

    assert found("order by i limit 10") == [4, 2, 1, 3]
    assert found("order by i desc limit 2") == [3, 1]
    assert found("order by s desc, k desc limit 4") == [2, 3, 1, 4]
    assert found("order by k offset 1 limit 2") == [2, 3]
    assert found("offset 2 limit 10") == [3, 4]
    assert found("limit 0") == []


def test_groups(cluster: Cluster) -> None:
    rows = select(
        cluster,
        f"s, sum(i) as total, min(k), max(u) as top, avg(d) as mean, sum(1) as n "
        f"from [{T}] group by s order by s limit 10",
    )
    assert rows == [
        {"s": None, "total": None, "min(k)": 4, "top": None, "mean": None, "n": 1},
        {"s": b"a", "total": 40, "min(k)": 1, "top": 3, "mean": 1.5, "n": 2},
        {"s": b"b", "total": -7, "min(k)": 2, "top": 2**64 - 1, "mean": 1.5, "n": 1},
    ]


def test_a_group_over_everything(cluster: Cluster) -> None:
    assert select(cluster, f"sum(1) as n from [{T}] group by 1") == [{"n": 4}]
    assert select(cluster, f"sum(1) as n from [{T}] where k > 9 group by 1") == []


def test_groups_by_expression_with_having(cluster: Cluster) -> None:
    rows = select(
        cluster,
        f"odd, sum(k) + 1 as total from [{T}] group by k % 2 as odd having sum(k) > 4",
    )
    assert rows == [{"odd": 0, "total": 7}]
    assert select(cluster, f"k % 2 as odd from [{T}] group by k % 2 order by odd limit 9") == [
        {"odd": 0},
        {"odd": 1},
    ]


def test_rows_of_a_queue_have_a_position(cluster: Cluster) -> None:
    rows = select(cluster, f"* from [{Q}] where [$tablet_index] = 1 and [$row_index] > 0")
    assert [(row["a"], row["$tablet_index"], row["$row_index"]) for row in rows] == [
        (3, 1, 1),
        (5, 1, 2),
    ]


def test_a_queue_at_a_timestamp(cluster: Cluster) -> None:
    path = "//tmp/growing"
    table(cluster, path, PLAIN)
    write(cluster, path, {"a": 1})
    then = cluster.clock.timestamp()
    write(cluster, path, {"a": 2})
    assert len(select(cluster, f"* from [{path}]", then)) == 1
    assert len(select(cluster, f"* from [{path}]")) == 2


def test_rows_are_found_by_the_first_columns_of_the_key(cluster: Cluster) -> None:
    """Narrowing by key must find what a full scan finds, whatever the key's type."""
    path = "//tmp/keyed"
    kinds = {"i": "int64", "u": "uint64", "s": "string", "d": "double"}
    columns = [{"name": n, "type": t, "sort_order": "ascending"} for n, t in kinds.items()]
    table(cluster, path, [*columns, {"name": "v", "type": "int64"}])
    values: list[dict[str, Any]] = [
        {"i": i, "u": u, "s": s, "d": d, "v": 0}
        for i in (None, -1, 2)
        for u in (None, 3)
        for s in (None, "", "a")
        for d in (None, 1.0)
    ]
    write(cluster, path, *values)

    def literal(value: Any) -> str:
        if value is None:
            return "null"
        return f'"{value}"' if isinstance(value, str) else str(value)

    for row in values:
        condition = " and ".join(f"{name} = {literal(row[name])}" for name in kinds)
        assert len(select(cluster, f"v from [{path}] where {condition}")) == 1
    assert len(select(cluster, f"v from [{path}] where i = 2 and u = 3")) == 6
    assert len(select(cluster, f"v from [{path}] where u = 3")) == 18


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("a from [//tmp/t] join [//tmp/queue] on k = a", "JOIN with ordered table"),
        ("k from [//tmp/t] array join any as a", "ARRAY"),
        ("k from [//tmp/t] where s rlike 'a.'", "RLIKE"),
        ("k from [//tmp/t] where s not regexp 'a.'", "REGEXP"),
        ("cast(k as [List<Int64>]) from [//tmp/t]", "CAST to List<Int64>"),
        ("cast(s as bool) from [//tmp/t]", 'CAST of "string" to "boolean"'),
        ("s from [//tmp/t] group by s with totals", "WITH"),
        ("k from (k from [//tmp/t])", "a subquery"),
        ("count(k) from [//tmp/t] group by 1", 'function "count"'),
        ("upper(s) from [//tmp/t]", 'function "upper"'),
    ],
)
def test_what_is_not_offered_is_refused_by_name(cluster: Cluster, query: str, name: str) -> None:
    with pytest.raises(YtError) as caught:
        run_query(cluster.tables, query)
    assert name in caught.value.message
    assert "not supported by minicluster" in caught.value.message


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "an expression expected"),
        ("k", '"from" expected'),
        ("k from", "a name expected"),
        ("k from [//tmp/t] where", "an expression expected"),
        ("k from [//tmp/t] where (k = 1", r'"\)" expected'),
        ("coalesce() from [//tmp/t]", "needs arguments"),
        ("k from [//tmp/t] limit -1", "a number expected"),
        ("k from [//tmp/t] limit 1 offset 1", "end of query expected"),
        ("k from [//tmp/t] order by k", "ORDER BY used without LIMIT"),
        ("k from [//tmp/t] offset 1", "OFFSET used without LIMIT"),
        ("k ? 1 from [//tmp/t]", 'unexpected "\\?"'),
        ("'open from [//tmp/t]", 'unexpected "\'"'),
        ("x from [//tmp/t]", 'Undefined reference "x"'),
        ("k as x, i as x from [//tmp/t]", "already used"),
        ("y as x, x as y from [//tmp/t]", "Undefined reference"),
        ("k from [//tmp/t] as t", 'Undefined reference "k"'),
        ("t.k from [//tmp/t]", 'Undefined reference "t.k"'),
        ("k from [//tmp/t] where k", "WHERE-clause is not a boolean"),
        ("k from [//tmp/t] where k = 'a'", 'Type mismatch in expression "="'),
        ("k from [//tmp/t] where s + 1 = 2", r'Type mismatch in expression "\+"'),
        ("k from [//tmp/t] where any = 1", "Type mismatch"),
        ("k from [//tmp/t] where not k", 'Type mismatch in expression "NOT"'),
        ("k from [//tmp/t] where k in (i)", "Expected constants"),
        ("k from [//tmp/t] where (k, i) = (1, 2, 3)", "cannot be compared"),
        ("k / 0 from [//tmp/t]", "Division by zero"),
        ("sum(k) from [//tmp/t]", "Misuse of aggregate function"),
        ("k from [//tmp/t] where sum(k) > 1 group by k", "Misuse of aggregate function"),
        ("sum(s) from [//tmp/t] group by 1", 'Type mismatch in expression "sum"'),
        ("sum(k, i) from [//tmp/t] group by 1", "exactly one argument"),
        ("i from [//tmp/t] group by k", 'Undefined reference "i"'),
        ("* from [//tmp/t] group by k", "wildcard projection"),
        ("int64() from [//tmp/t]", "Expected 1 arguments"),
        ("int64(s) from [//tmp/t]", "Wrong type for argument"),
        ("int64(any) from [//tmp/t]", "Cannot convert value"),
        ("int64(1e19) from [//tmp/t]", "out of range"),
        ("get_int64(any, '/0/x') from [//tmp/t]", "is not found at YPath /0/x"),
        ("try_get_int64(any, '/1/') from [//tmp/t]", 'Unexpected YPath token "/"'),
        ("try_get_int64(s, '/x') from [//tmp/t]", "Wrong type for argument"),
        ("case k when 1 then s else i end from [//tmp/t]", 'Type mismatch in expression "CASE"'),
        ("case k when 's' then 1 end from [//tmp/t]", 'Type mismatch in expression "="'),
        ("case k end from [//tmp/t]", '"when" expected'),
        ("k from [//tmp/t] where s like k", 'Type mismatch in expression "LIKE"'),
        ("k from [//tmp/t] where s like 'a' escape 'xx'", "empty or one character"),
        ("k from [//tmp/t] where s like 'a|' escape '|'", "Incomplete escape sequence"),
        ("cast(i as int64) from [//tmp/t]", "null value during cast to a non-nullable type"),
        ("cast(s as double) from [//tmp/t]", 'Cannot convert value "a" of type "string"'),
        ("parse_int64('1e30') from [//tmp/t]", "out of range"),
        ("parse_int64('9223372036854775808') from [//tmp/t]", "Cannot convert value"),
        ("parse_uint64('-1') from [//tmp/t]", "Cannot convert value"),
        ("parse_double('1_0') from [//tmp/t]", "Cannot convert value"),
        ("timestamp_floor_year_tz(-62135596800, 'America/New_York') from [//tmp/t]", "outside"),
        ("farm_hash(d) from [//tmp/t]", "Wrong type for argument"),
        ("timestamp_floor_day(-62135596801) from [//tmp/t]", "smaller than minimal"),
        ("format_timestamp(253402300800, '%Y') from [//tmp/t]", "greater than maximal"),
        ("format_timestamp(0, '1234567890123456789012345678901') from [//tmp/t]", "too long"),
        ("timestamp_floor_day_tz(k, 'Nowhere/Town') from [//tmp/t]", "Unknown time zone"),
        ("argmax(k) from [//tmp/t] group by 1", "exactly 2 arguments"),
        ("argmax(any, k) from [//tmp/t] group by 1", 'Type mismatch in expression "argmax"'),
        ("k from [//tmp/t] join [//tmp/t] as u on k = u.i", "key is not used"),
        ("i from [//tmp/t] join [//tmp/t] on k + 1 = k", "occurs both in main and joined"),
        ("* from [//tmp/t] join [//tmp/t] using k", "occurs both in main and joined"),
        ("u.k from [//tmp/t] join [//tmp/t] as u on (k, i) = u.k", "cannot be compared"),
        ("u.k from [//tmp/t] join [//tmp/t] as u using k", 'Undefined reference "k"'),
        ("u.k from [//tmp/t] join [//tmp/t] as u on s = u.k", "Type mismatch"),
        ("k from [//tmp/none]", "Error resolving path"),
        ("k from [//tmp]", '"GetMountInfo" method is not supported'),
        ("99999999999999999999u from [//tmp/t]", "too large"),
        ("(" * 60 + "k" + ")" * 60 + " from [//tmp/t]", "Maximum expression depth"),
        ("k" + " + k" * 3000 + " from [//tmp/t]", "Maximum expression depth"),
        ("not " * 3000 + "b from [//tmp/t]", None),
        ("- " * 3000 + "k from [//tmp/t]", "Maximum expression depth"),
    ],
)
def test_wrong_queries_get_an_error_of_yt(
    cluster: Cluster, query: str, message: str | None
) -> None:
    if message is None:
        assert len(run_query(cluster.tables, query).rows) == len(ROWS)
    else:
        with pytest.raises(YtError, match=message):
            run_query(cluster.tables, query)


def test_all_columns_of_joined_tables_have_the_alias_of_their_table(cluster: Cluster) -> None:
    query = f"* from [{T}] as t left join [{T}] as u on t.i / 10 = u.k where t.k < 3 and t.b"
    (row,) = select(cluster, query)
    assert list(row) == [f"{table}.{column['name']}" for table in "tu" for column in COLUMNS]
    assert (row["t.k"], row["u.k"], row["t.any"], row["u.s"]) == (1, 1, [1, {b"x": 2}], b"a")


def test_statistics_count_what_is_read_and_written(cluster: Cluster) -> None:
    statistics = Statistics()
    query = f"a from [{Q}] where [$tablet_index] = 1 limit 2"
    run_query(cluster.tables, query, statistics=statistics)
    # An int64, both numbers of its place, and the row itself.
    assert statistics == Statistics(rows_read=2, data_weight_read=50, rows_written=2)
    statistics = Statistics()
    query = f"t.s from [{T}] as t join [{T}] as u on t.i / 10 = u.k"
    run_query(cluster.tables, query, statistics=statistics)
    assert (statistics.rows_read, statistics.rows_written) == (8, 2)


_PLACES = "([$tablet_index], [$row_index]) in"


@pytest.mark.parametrize(
    ("where", "found", "read"),
    [
        (f"{_PLACES} ((1, 2), (0, 0), (1, 2), (0, 9), (7, 0))", [0, 5], 2),
        (f"{_PLACES} ((0, 0), (1, 1)) and a > 0", [3], 2),
        (f"a > 0 and {_PLACES} ((0, 0), (1, 1))", [3], 2),
        (f"{_PLACES} ((0, 0)) or a = 5", [0, 5], 6),
        (f"{_PLACES} ((0, -1), (1, 0))", [1], 1),
        ("([$row_index], [$tablet_index]) in ((1, 0))", [2], 6),
        (f"not {_PLACES} ((0, 0), (1, 1))", [1, 2, 4, 5], 6),
        ("[$tablet_index] = 1 and [$row_index] in (0, 2, 2, 9) and a < 9", [1, 5], 2),
        ("[$tablet_index] in (0, 1) and 1 = [$row_index]", [2, 3], 2),
        ("[$tablet_index] = 1 and ([$row_index] = 0 or [$row_index] = 1)", [1, 3], 3),
    ],
)
def test_a_query_reads_the_rows_of_a_queue_that_it_names(
    cluster: Cluster, where: str, found: list[int], read: int
) -> None:
    statistics = Statistics()
    query = f"a from [{Q}] where {where}"
    run_query(cluster.tables, query, statistics=statistics)
    assert sorted(row["a"] for row in select(cluster, query)) == found
    assert statistics.rows_read == read


@pytest.mark.parametrize(
    ("where", "found", "read"),
    [
        ("k in (3, 1, 1)", [1, 3], 2),
        ("k in (3, 1) or s = 'zz'", [1, 3], len(ROWS)),
        ("k = 1", [1], 1),
        ("k >= 2 and k < 4 and s = 'a'", [3], 2),
        ("k > 1 and k > 0 and k <= 2", [2], 1),
        ("k > 3", [4], 1),
        ("k > 3 or k < 2", [1, 4], len(ROWS)),
    ],
)
def test_a_query_reads_the_rows_of_the_keys_that_it_names(
    cluster: Cluster, where: str, found: list[int], read: int
) -> None:
    statistics = Statistics()
    run_query(cluster.tables, f"k from [{T}] where {where}", statistics=statistics)
    assert keys(cluster, where) == found
    assert statistics.rows_read == read


def test_an_unmounted_table_cannot_be_selected_from(cluster: Cluster) -> None:
    table(cluster, "//tmp/off", COLUMNS, mount=False)
    with pytest.raises(YtError, match="Cannot read from tablet") as caught:
        run_query(cluster.tables, "* from [//tmp/off]")
    assert caught.value.code == codes.TABLET_NOT_MOUNTED
