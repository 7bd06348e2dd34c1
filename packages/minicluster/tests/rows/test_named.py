"""Structs and named variants: with names over HTTP, by position in tables and over RPC."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yt.wrapper as yt
from yt import yson
from yt.wrapper.errors import YtResponseError

from minicluster import persist, testing
from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.query import select as run_query
from minicluster.rows import wire
from minicluster.rows.named import shown, stored
from minicluster.rows.rowset import Rowset
from minicluster.rows.schema import TableSchema
from packages.minicluster.tests.support.tables_lab import KEYED, Row, select, table, write

POSITIONAL = yt.YsonFormat(attributes={"complex_type_mode": "positional"})


def optional(item: Any) -> Row:
    return {"type_name": "optional", "item": item}


def many(item: Any) -> Row:
    return {"type_name": "list", "item": item}


def members(kind: str, **types: Any) -> Row:
    listed = [{"name": name, "type": type_} for name, type_ in types.items()]
    return {"type_name": kind, "members": listed}


def elements(kind: str, *types: Any) -> Row:
    return {"type_name": kind, "elements": [{"type": type_} for type_ in types]}


def tagged(item: Any) -> Row:
    return {"type_name": "tagged", "tag": "t", "item": item}


def pairs(key: Any, value: Any) -> Row:
    return {"type_name": "dict", "key": key, "value": value}


POINT = members("struct", x="int64", y=optional("utf8"))
CHOICE = members("variant", number="int64", point=POINT)
EITHER = elements("variant", "int64", POINT)


def schema(type_v3: Any) -> TableSchema:
    return TableSchema.from_yson([{"name": "v", "type_v3": type_v3}])


def kept(type_v3: Any, value: Any, *, positional: bool = False) -> Any:
    """Return a value as a table stores it."""
    (row,) = stored(schema(type_v3), [{"v": value}], positional=positional)
    return row["v"]


def read(type_v3: Any, value: Any) -> Any:
    """Return a stored value as a client sees it."""
    data = yson.dumps(value, yson_format="binary")
    row = wire.encode([(0, wire.COMPOSITE, data)])
    (found,) = shown(Rowset(schema(type_v3).rowset_columns(), [row]))
    assert found is not None
    return found["v"]


NESTED = [
    (POINT, {"x": 1, "y": b"a"}, [1, b"a"]),
    (POINT, {"y": None, "x": 1}, [1, None]),
    (optional(POINT), {"x": 1, "y": None}, [1, None]),
    (optional(optional(POINT)), [{"x": 1, "y": None}], [[1, None]]),
    (optional(optional(POINT)), [None], [None]),
    (tagged(POINT), {"x": 1, "y": None}, [1, None]),
    (optional(tagged(optional(POINT))), [{"x": 1, "y": None}], [[1, None]]),
    (many(POINT), [{"x": 1, "y": None}, {"x": 2, "y": b"b"}], [[1, None], [2, b"b"]]),
    (elements("tuple", "int64", POINT), [7, {"x": 1, "y": None}], [7, [1, None]]),
    (pairs("utf8", POINT), [[b"k", {"x": 1, "y": None}]], [[b"k", [1, None]]]),
    (pairs(POINT, "int64"), [[{"x": 1, "y": None}, 5]], [[[1, None], 5]]),
    (members("struct", a=many(POINT), n="null"), {"a": [], "n": None}, [[], None]),
    (CHOICE, ["number", 5], [0, 5]),
    (CHOICE, ["point", {"x": 1, "y": None}], [1, [1, None]]),
    (EITHER, [0, 5], [0, 5]),
    (EITHER, [1, {"x": 1, "y": None}], [1, [1, None]]),
    (members("struct", any=optional("yson")), {"any": {"k": [1]}}, [{"k": [1]}]),
]


@pytest.mark.parametrize(("type_v3", "named", "positional"), NESTED)
def test_names_become_positions_and_back_at_any_depth(
    type_v3: Any, named: Any, positional: Any
) -> None:
    assert kept(type_v3, named) == positional
    assert kept(type_v3, positional, positional=True) == positional
    assert plain(read(type_v3, positional)) == plain(named)


def plain(value: Any) -> Any:
    """Return the value with text and bytes made the same, in a map's keys and its values."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


def test_missing_members_are_null() -> None:
    assert kept(POINT, {"x": 1}) == [1, None]
    assert kept(POINT, {b"x": 1}) == [1, None]
    assert read(POINT, [1]) == {"x": 1, "y": None}


def test_rows_without_names_in_their_types_are_not_touched() -> None:
    rows = [{"v": ["anything", {"at": "all"}]}]
    assert stored(schema(many("int64")), rows, positional=False) is rows
    assert schema(many("int64")).rowset_columns()[0].logical is None


@pytest.mark.parametrize(
    ("type_v3", "value", "code", "message"),
    [
        (POINT, {"x": 1, "z": 2}, 1, 'Unknown field "z" while parsing "v"'),
        (POINT, {b"\xff": 1}, 1, 'Unknown field "\\xff" while parsing "v"'),
        (POINT, {"y": "a"}, 1, 'Field "x" is missing while parsing "v"'),
        (POINT, [1, None], 1, 'Cannot parse "v"; expected "begin_map", actual "begin_list"'),
        (many(POINT), {}, 1, 'Cannot parse "v"; expected "begin_list", actual "begin_map"'),
        (
            optional(many(POINT)),
            [5],
            1,
            'Cannot parse "v.<optional-element>.<list-element>"; '
            'expected "begin_map", actual "int64_value"',
        ),
        (CHOICE, ["other", 1], 1, 'Unknown variant field "other" while parsing "v"'),
        (CHOICE, [0, 1], 1, 'Cannot parse "v"; expected "string_value", actual "int64_value"'),
        (CHOICE, ["number", 1, 2], 1, 'expected "end_list", actual "int64_value"'),
        (EITHER, [2, 1], 1, "variant tag (2) exceeds variant alternative count (2)"),
        (EITHER, [-1, 1], 1, "variant tag (-1) is negative"),
        (CHOICE, ["number"], 307, 'Cannot parse "v"; expected a tag and a value'),
        (POINT, {"x": "1"}, 307, 'Cannot parse "v.x": expected "int64_value", found "string'),
        (POINT, {"x": None}, 307, 'Cannot parse "v.x": expected "int64_value", found "entity'),
        (POINT, {"x": True}, 307, 'Cannot parse "v.x": expected "int64_value", found "boolean'),
        (POINT, {"x": yson.YsonUint64(1)}, 307, 'expected "int64_value", found "uint64_value"'),
        (POINT, {"x": 1, "y": b"\xff"}, 307, "Not a valid utf8 string"),
        (members("struct", a="int8"), {"a": 128}, 307, "128 is out of allowed range [-128, 127]"),
        (
            members("struct", a=many("int64")),
            {"a": {}},
            307,
            'Cannot parse "v.a": expected "begin_list", found "begin_map"',
        ),
        (
            members("struct", a=elements("tuple", "int64", "int64")),
            {"a": [1]},
            307,
            'Cannot parse "v.a"; expected "v.a.<tuple-element-1>" got "end_list"',
        ),
    ],
)
def test_values_that_do_not_fit_are_refused(
    type_v3: Any, value: Any, code: int, message: str
) -> None:
    with pytest.raises(YtError) as caught:
        kept(type_v3, value)
    assert caught.value.code == code
    reasons = caught.value.inner or [caught.value]
    assert message in reasons[0].message
    if code == 307:
        assert caught.value.message == 'Error validating column "v"'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"x": 1}, 'expected "begin_list", actual "begin_map"'),
        ([], 'struct ended before required field "x" is set'),
        ([1, "a", 2], 'expected "end_list", actual "int64_value"'),
        (["a"], 'Cannot parse "v.x": expected "int64_value", found "string_value"'),
    ],
)
def test_positions_are_checked_as_well(value: Any, message: str) -> None:
    with pytest.raises(YtError) as caught:
        kept(POINT, value, positional=True)
    assert message in (caught.value.inner or [caught.value])[0].message


def test_values_with_attributes_are_refused() -> None:
    inner = yson.to_yson_type({"x": 1}, attributes={"a": 1})
    for value in (inner, {"x": yson.to_yson_type(1, attributes={"a": 1})}):
        with pytest.raises(YtError) as caught:
            kept(POINT, value)
        assert '"begin_attributes"' in (caught.value.inner or [caught.value])[0].message


def test_what_a_client_of_rpc_wrote_wrongly_is_an_error_and_not_a_defect() -> None:
    for value in ({"x": 1}, [1, None, 5], 7):
        with pytest.raises(YtError, match='Cannot parse "v"'):
            read(POINT, value)


@pytest.mark.parametrize(
    ("type_v3", "message"),
    [
        (many("int65"), 'unknown type "int65"'),
        ("list", 'unknown type "list"'),
        ({"type_name": "list"}, '"item" is missing'),
        ({"type_name": "struct"}, '"members" is missing'),
        ({"type_name": "tuple", "elements": 5}, '"elements" must be a list'),
        ({"type_name": "variant", "members": [5]}, '"name" is missing'),
        (members("struct", **{"": "int64"}), "Name of struct field #0 is empty"),
        (members("struct", **{"a" * 257: "int64"}), "exceeds limit: 257 > 256"),
        (
            {"type_name": "struct", "members": [{"name": "a", "type": "int64"}] * 2},
            'Struct field name "a" is used twice',
        ),
    ],
)
def test_types_that_are_none_are_refused(type_v3: Any, message: str) -> None:
    with pytest.raises(YtError) as caught:
        schema(type_v3)
    assert caught.value.message.startswith('Error parsing type of column "v": ')
    assert message in caught.value.message


def test_types_have_a_limit_to_their_depth() -> None:
    type_: Any = "int64"
    for _ in range(31):
        type_ = many(type_)
    assert schema(type_).columns[0].composite
    with pytest.raises(YtError, match="nested deeper than 32"):
        schema(many(type_))


def test_a_tagged_composite_is_a_composite() -> None:
    for type_v3 in (tagged(POINT), optional(tagged(many("int64")))):
        assert schema(type_v3).columns[0].wire_type == wire.COMPOSITE
    assert schema(tagged("int64")).columns[0].wire_type == wire.INT64


# Through the front ends

COLUMNS: list[Row] = [KEYED[0], {"name": "v", "type_v3": optional(POINT)}]
ROWS: list[Row] = [{"k": 1, "v": {"x": 1, "y": "ж"}}, {"k": 2, "v": None}]


def make(client: Any, path: str, columns: list[Row], **attributes: Any) -> str:
    unique = "sort_order" in columns[0] and attributes.get("dynamic", False)
    given = yson.to_yson_type(columns, attributes={"strict": True, "unique_keys": unique})
    client.create("table", path, attributes={"schema": given, **attributes})
    if attributes.get("dynamic"):
        client.mount_table(path, sync=True)
    return path


def test_the_state_holds_positions_and_so_does_its_file(cluster: Cluster, tmp_path: Path) -> None:
    table(cluster, "//t", COLUMNS)
    write(cluster, "//t", {"k": 1, "v": [1, "a"]})
    persist.save(cluster, str(tmp_path / "s"))
    loaded = Cluster()
    persist.load(loaded, str(tmp_path / "s"))
    for one in (cluster, loaded):
        assert select(one, "v from [//t]") == [{"v": [1, b"a"]}]
        (row,) = shown(run_query(one.tables, "v from [//t]"))
        assert row == {"v": {"x": 1, "y": b"a"}}


def test_sorted_tables(client: Any, root: str) -> None:
    path = make(client, f"{root}/t", COLUMNS, dynamic=True)
    client.insert_rows(path, ROWS)
    assert list(client.lookup_rows(path, [{"k": 1}, {"k": 2}])) == ROWS
    assert list(client.lookup_rows(path, [{"k": 1}], column_names=["v"])) == [{"v": ROWS[0]["v"]}]
    assert list(client.select_rows(f"* from [{path}]")) == ROWS
    (row,) = client.select_rows(f"t.k as k, t.v as w from [{path}] as t where t.k = 1")
    assert row == {"k": 1, "w": ROWS[0]["v"]}
    rows = client.select_rows(f"w, sum(1) as n from [{path}] where k = 1 group by v as w")
    assert list(rows) == [{"w": ROWS[0]["v"], "n": 1}]
    client.insert_rows(path, [{"k": 1, "v": {"x": 5}}], update=True)
    assert next(client.read_table(path)) == {"k": 1, "v": {"x": 5, "y": None}}


def test_a_row_that_is_refused_changes_nothing(client: Any, root: str) -> None:
    path = make(client, f"{root}/t", COLUMNS, dynamic=True)
    for value, message in (
        ({"x": 1, "z": 1}, 'Unknown field "z"'),
        ({"x": "1"}, 'Error validating column "v"'),
        (5, 'Error validating column "v"'),
    ):
        with pytest.raises(YtResponseError, match=message):
            client.insert_rows(path, [ROWS[0], {"k": 9, "v": value}])
    assert list(client.select_rows(f"* from [{path}]")) == []


def test_queues(client: Any, root: str) -> None:
    queue = make(client, f"{root}/q", [COLUMNS[1]], dynamic=True)
    client.insert_rows(queue, [{"v": {"x": 3}}])
    client.create("queue_consumer", f"{root}/c")
    client.mount_table(f"{root}/c", sync=True)
    client.register_queue_consumer(queue, f"{root}/c", vital=True)
    (row,) = client.pull_queue(queue, 0, 0)
    assert row["v"] == {"x": 3, "y": None}
    (row,) = client.pull_queue_consumer(f"{root}/c", queue, 0, 0)
    assert row["v"] == {"x": 3, "y": None}
    client.create("queue_producer", f"{root}/p")
    client.mount_table(f"{root}/p", sync=True)
    client.create_queue_producer_session(f"{root}/p", queue, "s")
    pushed = [{"v": {"x": 4, "y": "b"}, "$sequence_number": 1}]
    client.push_queue_producer(f"{root}/p", queue, "s", 0, pushed)
    found = [row["v"] for row in client.select_rows(f"v from [{queue}]")]
    assert found == [{"x": 3, "y": None}, {"x": 4, "y": "b"}]


@pytest.mark.parametrize("format_", [yt.YsonFormat(), yt.JsonFormat()])
def test_static_tables(client: Any, root: str, format_: Any) -> None:
    path = make(client, f"{root}/s", COLUMNS)
    client.write_table(path, ROWS, format=format_)
    assert list(client.read_table(path, format=format_)) == ROWS


def test_a_format_can_ask_for_positions(client: Any, root: str) -> None:
    path = make(client, f"{root}/s", COLUMNS)
    client.write_table(path, [{"k": 1, "v": [1, "ж"]}], format=POSITIONAL)
    assert list(client.read_table(path)) == ROWS[:1]
    assert list(client.read_table(path, format=POSITIONAL)) == [{"k": 1, "v": [1, "ж"]}]
    path = make(client, f"{root}/t", COLUMNS, dynamic=True)
    client.insert_rows(path, [{"k": 1, "v": [1, "ж"]}], format=POSITIONAL)
    assert list(client.select_rows(f"* from [{path}]", format=POSITIONAL)) == ROWS[:1]


def test_other_ways_to_write_values_are_refused(client: Any, root: str) -> None:
    path = make(client, f"{root}/s", COLUMNS)
    other = yt.YsonFormat(attributes={"decimal_mode": "text"})
    with pytest.raises(YtResponseError, match='"decimal_mode" other than "binary"'):
        client.write_table(path, ROWS, format=other)
    unknown = yt.YsonFormat(attributes={"complex_type_mode": "other"})
    with pytest.raises(YtResponseError, match="complex_type_mode"):
        client.write_table(path, ROWS, format=unknown)


def test_a_format_in_a_header_counts(client: Any, running: testing.Running, root: str) -> None:
    path = make(client, f"{root}/s", COLUMNS)
    client.write_table(path, ROWS[:1])
    for mode, value in (("named", {"x": 1, "y": "ж"}), ("positional", [1, "ж"])):
        request = urllib.request.Request(
            f"http://{running.http}/api/v4/read_table?path={path}",
            headers={
                "X-YT-Output-Format": f"<encode_utf8=%false;complex_type_mode={mode}>json",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.loads(answer.read()) == {"k": 1, "v": value}
