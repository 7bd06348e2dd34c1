"""Table schemas: both ways of writing types, what is refused, what values a column takes."""

from __future__ import annotations

from typing import Any

import pytest
from yt import yson
from yt.wrapper.schema import TableSchema as ClientSchema
from yt.wrapper.schema import ti

from minicluster.core.errors import YtError
from minicluster.rows import wire
from minicluster.rows.schema import Column, TableSchema, check_value
from minicluster.rows.types import SCALARS
from tests.support import codes


def schema(*columns: dict[str, Any], **attributes: bool) -> TableSchema:
    return TableSchema.from_yson(yson.to_yson_type(list(columns), attributes=attributes))


def test_a_column_by_its_old_type_says_the_new_one_too() -> None:
    shown = schema({"name": "a", "type": "boolean"}, {"name": "b", "type": "any"}).to_yson()
    assert [column["type_v3"] for column in shown] == [
        {"type_name": "optional", "item": "bool"},
        {"type_name": "optional", "item": "yson"},
    ]
    assert [column["required"] for column in shown] == [False, False]
    assert shown.attributes == {"strict": True, "unique_keys": False}


def test_a_column_by_its_new_type_says_the_old_one_too() -> None:
    shown = schema(
        {"name": "a", "type_v3": "bool"},
        {"name": "b", "type_v3": {"type_name": "optional", "item": "utf8"}},
        {"name": "c", "type_v3": {"type_name": "list", "item": "int64"}},
        {"name": "d", "type_v3": {"type_name": "decimal", "precision": 10, "scale": 2}},
    ).to_yson()
    assert [(column["type"], column["required"]) for column in shown] == [
        ("boolean", True),
        ("utf8", False),
        ("any", True),
        ("string", True),
    ]


def test_schemas_survive_a_round_trip() -> None:
    given = schema(
        {"name": "k", "type": "int64", "sort_order": "ascending", "required": True},
        {
            "name": "v",
            "type_v3": {"type_name": "optional", "item": {"type_name": "list", "item": "utf8"}},
        },
        {"name": "s", "type": "string", "group": "g"},
        unique_keys=True,
    )
    assert TableSchema.from_yson(given.to_yson()) == given
    assert given.to_yson()[2]["group"] == "g"


def test_the_real_client_reads_back_what_it_wrote() -> None:
    wanted = (
        ClientSchema(strict=True, unique_keys=True)
        .add_column("k", ti.Int64, sort_order="ascending")
        .add_column("t", ti.Timestamp)
        .add_column("l", ti.Optional[ti.List[ti.Utf8]])
        .add_column("d", ti.Decimal(20, 4))
    )
    kept = TableSchema.from_yson(wanted.to_yson_type()).to_yson()
    assert ClientSchema.from_yson_type(kept) == wanted


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([{"type": "int64"}], "needs a name"),
        ([{"name": "", "type": "int64"}], "cannot be empty"),
        ([{"name": "a"}], "type is not specified"),
        ([{"name": "a", "type": "int65"}], 'ESimpleLogicalValueType value "int65"'),
        ([{"name": "a", "type": "int64"}] * 2, 'Duplicate column "a"'),
        ([{"name": "$a", "type": "int64"}], "cannot start with"),
        (
            [
                {"name": "a", "type": "int64"},
                {"name": "b", "type": "int64", "sort_order": "ascending"},
            ],
            "Key columns must form a prefix",
        ),
        (
            [
                {
                    "name": "a",
                    "type_v3": {"type_name": "list", "item": "int64"},
                    "sort_order": "ascending",
                }
            ],
            "cannot be of type",
        ),
        (
            [{"name": "a", "type_v3": "int64", "required": False}],
            '"type_v3" and "required" that do not match',
        ),
    ],
)
def test_refused_columns(columns: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(YtError, match=message):
        schema(*columns)


KEY = {"name": "k", "type": "int64", "sort_order": "ascending"}
VALUE = {"name": "v", "type": "int64"}


@pytest.mark.parametrize(
    ("columns", "attributes", "message"),
    [
        ([VALUE], {"strict": False}, '"strict" cannot be "false" for a dynamic table'),
        ([KEY, VALUE], {}, '"unique_keys" cannot be "false" for a sorted dynamic table'),
        ([KEY], {"unique_keys": True}, "at least one non-key column"),
        ([{**KEY, "type": "any"}, VALUE], {"unique_keys": True}, 'cannot be of type "any"'),
        ([{"name": "$timestamp", "type": "int64"}], {}, 'must be of type "uint64"'),
    ],
)
def test_what_a_dynamic_table_asks_for(
    columns: list[dict[str, Any]], attributes: dict[str, bool], message: str
) -> None:
    with pytest.raises(YtError, match=message):
        schema(*columns, **attributes).validate_dynamic()


def column(type_: str, **options: Any) -> Column:
    return schema({"name": "x", "type": type_, **options}).columns[0]


@pytest.mark.parametrize("type_", sorted(name for name, kind in SCALARS.items() if kind.bounds))
def test_integers_at_and_beyond_their_bounds(type_: str) -> None:
    bounds = SCALARS[type_].bounds
    assert bounds is not None
    kind = SCALARS[type_].wire_type
    for value in bounds:
        check_value(column(type_), kind, value)
    for value in (bounds[0] - 1, bounds[1] + 1):
        with pytest.raises(YtError, match='Error validating column "x"') as caught:
            check_value(column(type_), kind, value)
        assert "is out of allowed range" in caught.value.inner[0].message


@pytest.mark.parametrize(
    ("type_", "kind", "value", "inner"),
    [
        ("int64", wire.STRING, b"1", 'Invalid type: expected "int64", actual "string"'),
        ("double", wire.INT64, 1, 'Invalid type: expected "double", actual "int64"'),
        ("string", wire.ANY, b"#", 'Invalid type: expected "string", actual "any"'),
        ("utf8", wire.STRING, b"\xff", "Not a valid utf8 string"),
        ("uuid", wire.STRING, b"too short", "Not a valid Uuid"),
    ],
)
def test_refused_values(type_: str, kind: int, value: wire.Value, inner: str) -> None:
    with pytest.raises(YtError, match='Error validating column "x"') as caught:
        check_value(column(type_), kind, value)
    assert caught.value.code == codes.SCHEMA_VIOLATION
    assert inner in caught.value.inner[0].message


def test_null_goes_where_it_is_allowed() -> None:
    check_value(column("int64"), wire.NULL, None)
    with pytest.raises(YtError, match='Required column "x" cannot have "null" value'):
        check_value(column("int64", required=True), wire.NULL, None)
