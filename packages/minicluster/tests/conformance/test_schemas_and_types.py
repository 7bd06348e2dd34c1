"""Schemas of tables, and what their columns take."""

from __future__ import annotations

from typing import Any

import pytest
import yt.wrapper as yt
from yt import yson

from packages.minicluster.tests.conformance.conftest import Row, make_table, over_http
from tests.support import codes

KEY: Row = {"name": "k", "type": "int64", "sort_order": "ascending"}
DAYS, DAYS64 = 49673, 53375808
BOUNDS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "date": (0, DAYS - 1),
    "datetime": (0, DAYS * 86_400 - 1),
    "timestamp": (0, DAYS * 86_400_000_000 - 1),
    "interval": (-DAYS * 86_400_000_000 + 1, DAYS * 86_400_000_000 - 1),
    "date32": (-DAYS64 - 1, DAYS64 - 1),
    "datetime64": ((-DAYS64 - 1) * 86_400, DAYS64 * 86_400 - 1),
    "timestamp64": ((-DAYS64 - 1) * 86_400_000_000, DAYS64 * 86_400_000_000 - 1),
}


def column_table(client: Any, root: str, **column: Any) -> str:
    """Make a sorted table with one column beside the key."""
    return make_table(client, f"{root}/t", [KEY, {"name": "v", **column}])


def roundtrip(client: Any, table: str, *values: Any) -> list[Any]:
    client.insert_rows(table, [{"k": k, "v": value} for k, value in enumerate(values)])
    return [row["v"] for row in client.select_rows(f"v from [{table}] limit 1000")]


def refused(client: Any, table: str, value: Any) -> None:
    with pytest.raises(yt.YtError) as caught:
        client.insert_rows(table, [{"k": 99, "v": value}])
    assert caught.value.contains_code(codes.SCHEMA_VIOLATION)
    assert list(client.lookup_rows(table, [{"k": 99}])) == []


@pytest.mark.parametrize("name", BOUNDS)
def test_integers_have_bounds(client: Any, root: str, name: str) -> None:
    """Source: documentation, user-guide/storage/data-types (primitive types)"""
    table = column_table(client, root, type=name)
    low, high = BOUNDS[name]
    wrap = yson.YsonUint64 if low == 0 else yson.YsonInt64
    assert roundtrip(client, table, wrap(low), wrap(high), None) == [low, high, None]
    if high < 2**63 - 1:
        refused(client, table, wrap(high + 1))
    if -(2**63) < low < 0:
        refused(client, table, wrap(low - 1))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("double", [0.5, -1e300, None]),
        ("float", [0.5, -0.25, None]),
        ("boolean", [True, False, None]),
        ("utf8", ["", "жук", None]),
        ("string", ["", "text", None]),
        ("any", [{"a": [1, "ж", None, {"b": 2.5}]}, [1, [2]], "text", 5, None]),
    ],
)
def test_other_types_come_back_as_they_went(
    client: Any, root: str, name: str, values: list[Any]
) -> None:
    """Source: documentation, user-guide/storage/data-types (primitive types)"""
    table = column_table(client, root, type=name)
    assert roundtrip(client, table, *values) == values


def test_strings_may_hold_any_bytes_and_utf8_may_not(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/data-types (primitive types)"""
    columns = [KEY, {"name": "s", "type": "string"}, {"name": "v", "type": "utf8"}]
    table = make_table(client, f"{root}/t", columns)
    client.insert_rows(table, [{"k": 1, "s": b"\xff\x00"}])
    (row,) = client.select_rows(f"s from [{table}]")
    assert yson.get_bytes(row["s"]) == b"\xff\x00"
    refused(client, table, b"\xff\x00")


def test_a_value_of_any_has_no_attributes_of_its_own(client: Any, root: str) -> None:
    """Source: server source, client/table_client/unversioned_row.cpp (TYsonAnyValidator)"""
    table = column_table(client, root, type="any")
    inside = yson.to_yson_type(1, attributes={"a": 1})
    with pytest.raises(yt.YtError, match="Table values cannot have top-level attributes"):
        client.insert_rows(table, [{"k": 99, "v": yson.to_yson_type([1], attributes={"a": 1})}])
    client.insert_rows(table, [{"k": 0, "v": [inside]}])
    (row,) = client.select_rows(f"v from [{table}]")
    assert row["v"][0].attributes == {"a": 1}


def test_a_uuid_has_sixteen_bytes(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/data-types (primitive types)"""
    table = column_table(client, root, type="uuid")
    client.insert_rows(table, [{"k": 0, "v": bytes(range(16))}])
    refused(client, table, "0123456789abcdef0")


@pytest.mark.parametrize(
    "text", ["", "{oops", "[1", '{"a": 1} 2', "'a'", '"\x01"', "1e400", "Infinity", b'"\xff"']
)
def test_json_is_parsed(client: Any, root: str, text: Any) -> None:
    """Source: server source, client/table_client/validate_logical_type.cpp
    (TValidateJsonCallbacks)"""
    table = column_table(client, root, type="json")
    refused(client, table, text)
    values = ["{}", '{"a": [1, "\u0436", null]}', " 1e300 "]
    assert roundtrip(client, table, *values) == values


@pytest.mark.parametrize("value", [1e300, -3.5e38])
def test_a_float_has_32_bits(client: Any, root: str, value: float) -> None:
    """Source: server source, client/table_client/validate_logical_type-inl.h
    (ValidateSimpleLogicalType)"""
    table = column_table(client, root, type="float")
    with pytest.raises(yt.YtError, match="is out of allowed range") as caught:
        client.insert_rows(table, [{"k": 99, "v": value}])
    assert caught.value.contains_code(codes.SCHEMA_VIOLATION)
    values = [3.4e38, -3.4e38, float("inf"), float("-inf")]
    assert roundtrip(client, table, *values) == values


def test_static_tables_judge_the_same_values(client: Any, root: str) -> None:
    """Source: server source, client/table_client/unversioned_row.cpp (ValidateValueType)"""
    schema = [{"name": "j", "type": "json"}, {"name": "f", "type": "float"}]
    client.create("table", f"{root}/t", attributes={"schema": schema})
    for row in ({"j": "{oops"}, {"f": 1e300}):
        with pytest.raises(yt.YtError) as caught:
            client.write_table(f"{root}/t", [row])
        assert caught.value.contains_code(codes.SCHEMA_VIOLATION)
    client.write_table(f"{root}/t", [{"j": "{}", "f": 0.5}])
    assert list(client.read_table(f"{root}/t")) == [{"j": "{}", "f": 0.5}]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("int64", "text"),
        ("int64", 1.5),
        ("int64", True),
        ("string", 1),
        ("boolean", "true"),
        ("double", "1.5"),
    ],
)
def test_values_have_the_type_of_their_column(
    client: Any, root: str, name: str, value: Any
) -> None:
    """Source: documentation, user-guide/storage/static-schema (supported column types)"""
    refused(client, column_table(client, root, type=name), value)


def test_a_required_column_takes_no_null(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/static-schema (required)"""
    table = column_table(client, root, type="string", required=True)
    refused(client, table, None)
    with pytest.raises(yt.YtError):
        client.insert_rows(table, [{"k": 1}])
    assert roundtrip(client, table, "given") == ["given"]


@over_http
def test_composite_values_come_back(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/data-types (list, struct, optional)"""
    item = {"type_name": "struct", "members": [{"name": "x", "type": "int64"}]}
    kind = {"type_name": "optional", "item": {"type_name": "list", "item": item}}
    table = column_table(client, root, type_v3=kind)
    values = [[{"x": 1}, {"x": 2}], [], None]
    assert roundtrip(client, table, *values) == values


POINT: Row = {
    "type_name": "struct",
    "members": [
        {"name": "x", "type": "int64"},
        {"name": "y", "type": {"type_name": "optional", "item": "string"}},
    ],
}


@over_http
def test_structs_have_names(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/data-types (YSON, struct: named, positional)"""
    table = column_table(client, root, type_v3={"type_name": "optional", "item": POINT})
    values = [{"x": 1, "y": "a"}, {"y": None, "x": 2}]
    assert roundtrip(client, table, *values, {"x": 3}) == [*values, {"x": 3, "y": None}]
    positional = yt.YsonFormat(attributes={"complex_type_mode": "positional"})
    client.insert_rows(table, [{"k": 0, "v": [4, "b"]}, {"k": 1, "v": [5]}], format=positional)
    found = [row["v"] for row in client.lookup_rows(table, [{"k": 0}, {"k": 1}])]
    assert found == [{"x": 4, "y": "b"}, {"x": 5, "y": None}]


@over_http
def test_named_variants_have_names(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/data-types (YSON, named variant)"""
    choice = {**POINT, "type_name": "variant"}
    table = column_table(client, root, type_v3={"type_name": "optional", "item": choice})
    values = [["x", 1], ["y", "a"], ["y", None], None]
    assert roundtrip(client, table, *values) == values


def test_static_tables_hold_structs_by_position(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/data-types (YSON, struct: named, positional)"""
    schema = [{"name": "v", "type_v3": {"type_name": "list", "item": POINT}}]
    client.create("table", f"{root}/t", attributes={"schema": schema})
    client.write_table(f"{root}/t", [{"v": [{"x": 1, "y": "a"}, {"x": 2}]}])
    assert list(client.read_table(f"{root}/t")) == [
        {"v": [{"x": 1, "y": "a"}, {"x": 2, "y": None}]}
    ]
    positional = yt.YsonFormat(attributes={"complex_type_mode": "positional"})
    rows = client.read_table(f"{root}/t", format=positional)
    assert list(rows) == [{"v": [[1, "a"], [2, None]]}]


@over_http
@pytest.mark.parametrize(
    "value",
    [{"x": 1, "z": 2}, {"y": "a"}, {"x": "text"}, {"x": None}, {"x": 1, "y": 1}, [1, "a"], 5],
    ids=["unknown", "missing", "wrong-type", "null", "wrong-optional", "positional", "scalar"],
)
def test_members_of_a_struct_are_checked(client: Any, root: str, value: Any) -> None:
    """Source: documentation, user-guide/storage/data-types (struct; YSON, struct)"""
    table = column_table(client, root, type_v3={"type_name": "optional", "item": POINT})
    with pytest.raises(yt.YtError):
        client.insert_rows(table, [{"k": 99, "v": value}])
    assert list(client.lookup_rows(table, [{"k": 99}])) == []


def test_unknown_columns_are_refused(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/static-schema (strict)"""
    table = column_table(client, root, type="string")
    with pytest.raises(yt.YtError):
        client.insert_rows(table, [{"k": 1, "other": "x"}])
    assert list(client.select_rows(f"* from [{table}]")) == []


def test_a_schema_is_read_with_both_forms_of_types(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/static-schema (schema properties)"""
    table = make_table(
        client,
        f"{root}/t",
        [KEY, {"name": "b", "type": "boolean"}, {"name": "r", "type": "any"}],
    )
    schema = client.get(f"{table}/@schema")
    assert (schema.attributes["strict"], schema.attributes["unique_keys"]) == (True, True)
    key, flag, rest = schema
    assert (key["sort_order"], key["type"], key["required"]) == ("ascending", "int64", False)
    assert flag["type_v3"] == {"type_name": "optional", "item": "bool"}
    assert rest["type_v3"] == {"type_name": "optional", "item": "yson"}


def test_required_and_type_v3_say_the_same(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/data-types (primitive types)"""
    table = make_table(
        client,
        f"{root}/t",
        [
            KEY,
            {"name": "old", "type": "string", "required": True},
            {"name": "new", "type_v3": "string"},
            {"name": "free", "type_v3": {"type_name": "optional", "item": "string"}},
        ],
    )
    columns = client.get(f"{table}/@schema")[1:]
    assert [(column["required"], column["type"]) for column in columns] == [
        (True, "string"),
        (True, "string"),
        (False, "string"),
    ]
    assert columns[0]["type_v3"] == columns[1]["type_v3"] == "string"


@pytest.mark.parametrize(
    "columns",
    [
        [{"name": "a", "type": "int64"}, {"name": "a", "type": "int64"}],
        [{"name": "", "type": "int64"}],
        [{"name": "a"}],
        [{"name": "a", "type": "nonsense"}],
        [{"name": "$a", "type": "int64"}],
        [{"name": "a" * 257, "type": "int64"}],
        [{"name": "a", "type": "int64"}, KEY],
        [{"name": "a", "type": "any", "required": True}],
        [{"name": "a", "type": "any", "sort_order": "ascending"}, {"name": "b", "type": "int64"}],
        [],
    ],
    ids=[
        "duplicate",
        "nameless",
        "typeless",
        "unknown-type",
        "system-prefix",
        "long-name",
        "key-behind",
        "required-any",
        "key-of-any",
        "no-columns",
    ],
)
def test_wrong_schemas_are_refused(client: Any, root: str, columns: list[Row]) -> None:
    """Source: server test, client/table_client/unittests (ColumnSchemaValidation: names);
    documentation, user-guide/storage/static-schema (schema properties: the others)"""
    with pytest.raises(yt.YtError):
        client.create("table", f"{root}/t", attributes={"dynamic": True, "schema": columns})
    assert not client.exists(f"{root}/t")


def test_a_dynamic_table_is_strict(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (data model)"""
    schema = yson.to_yson_type([KEY, {"name": "v", "type": "string"}])
    schema.attributes = {"strict": False, "unique_keys": True}
    with pytest.raises(yt.YtError):
        client.create("table", f"{root}/t", attributes={"dynamic": True, "schema": schema})


@over_http
def test_columns_are_added(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/static-schema (changing a schema)"""
    table = column_table(client, root, type="string")
    client.insert_rows(table, [{"k": 1, "v": "old"}])
    client.unmount_table(table, sync=True)
    schema = client.get(f"{table}/@schema")
    schema.append({"name": "new", "type": "int64"})
    client.alter_table(table, schema=schema)
    client.mount_table(table, sync=True)
    client.insert_rows(table, [{"k": 2, "v": "later", "new": 5}])
    assert list(client.select_rows(f"* from [{table}] limit 9")) == [
        {"k": 1, "v": "old", "new": None},
        {"k": 2, "v": "later", "new": 5},
    ]


def test_columns_are_not_taken_away(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/static-schema (changing a schema)"""
    table = column_table(client, root, type="string")
    client.insert_rows(table, [{"k": 1, "v": "old"}])
    client.unmount_table(table, sync=True)
    schema = client.get(f"{table}/@schema")
    schema[1] = {"name": "other", "type": "int64"}
    with pytest.raises(yt.YtError):
        client.alter_table(table, schema=schema)
    assert [column["name"] for column in client.get(f"{table}/@schema")] == ["k", "v"]


def test_a_mounted_table_is_not_altered(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (changing a schema)"""
    table = column_table(client, root, type="string")
    schema = client.get(f"{table}/@schema")
    schema.append({"name": "new", "type": "int64"})
    with pytest.raises(yt.YtError):
        client.alter_table(table, schema=schema)
    assert len(client.get(f"{table}/@schema")) == 2


A: Row = {"name": "a", "type": "int64"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([{"name": "b", "type": "int64"}], 'Cannot remove column "a" from a strict schema'),
        ([{"name": "a", "type": "string"}], 'Type mismatch for column "a"'),
        ([{"name": "a", "type": "string"}], 'physical type from "int64" to "string"'),
        ([{"name": "a", "type": "int32"}], 'Type mismatch for column "a"'),
        ([{**A, "required": True}], 'Type mismatch for column "a"'),
        ([A, {"name": "b", "type": "int64", "required": True}], "insert a new required column"),
        ([{**A, "sort_order": "ascending"}, {"name": "b", "type": "int64"}], "sorted to ordered"),
    ],
)
def test_a_dynamic_table_keeps_its_columns(
    client: Any, root: str, columns: list[Row], message: str
) -> None:
    """Source: server source, ytlib/table_client/schema.cpp (ValidateTableSchemaUpdate);
    server/master/table_server/table_node_proxy.cpp (Alter: not even while it is empty)"""
    path = f"{root}/t"
    client.create("table", path, attributes={"dynamic": True, "schema": [A]})
    with pytest.raises(yt.YtError, match=message):
        client.alter_table(path, schema=columns)
    client.alter_table(path, schema=[{"name": "b", "type": "int64"}, A])


def test_a_static_table_may_lose_its_order(client: Any, root: str) -> None:
    """Source: server source, ytlib/table_client/schema.cpp (ValidateColumnsMatch)"""
    path = f"{root}/t"
    columns = [{**A, "sort_order": "ascending"}, {"name": "b", "type": "int64"}]
    client.create("table", path, attributes={"schema": columns})
    client.write_table(path, [{"a": 1, "b": 2}, {"a": 2, "b": 1}])
    with pytest.raises(yt.YtError, match=r"Cannot change position of a key column|Sort order"):
        client.alter_table(path, schema=[{**columns[1], "sort_order": "ascending"}, columns[0]])
    client.alter_table(path, schema=[columns[1], A])
    assert list(client.read_table(path)) == [{"b": 2, "a": 1}, {"b": 1, "a": 2}]
    with pytest.raises(yt.YtError, match="from unsorted to sorted") as caught:
        client.alter_table(path, schema=[columns[0], columns[1]])
    assert caught.value.contains_code(316)
    client.alter_table(
        path, schema=yson.to_yson_type([columns[1], A], attributes={"strict": False})
    )
    assert not client.get(f"{path}/@schema").attributes["strict"]
