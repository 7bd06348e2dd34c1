"""A column that SPYT's sink would write wrongly, or not at all, is known before the first batch."""

from __future__ import annotations

from typing import Any

import pytest
import yt.type_info as ti
from pyspark.sql import types

from tests.support import all_types
from ytstream import Column
from ytstream.schema.columns import NAMED_TYPES, resolved, spelled
from ytstream.schema.spark_types import never_written, unwritable
from ytstream.schema.table_schema import differences, table_schema

# Column, the widest type that fits, and the first one that is too wide.
INTEGERS = [
    ("int8", types.ByteType(), types.ShortType()),
    ("int16", types.ShortType(), types.IntegerType()),
    ("int32", types.IntegerType(), types.LongType()),
    ("uint8", types.ShortType(), types.IntegerType()),
    ("uint16", types.IntegerType(), types.LongType()),
    ("uint32", types.LongType(), types.DoubleType()),
]
COMPOSITES = (
    ti.List[ti.Optional[ti.Utf8]],
    ti.Dict[ti.Utf8, ti.Bool],
    ti.Struct["a" : ti.Int64, "b" : ti.Yson],
    ti.Tuple[ti.Int8, ti.Float],
    ti.Variant["a" : ti.Int64],
    ti.Variant[ti.Int8, ti.Utf8],
    ti.Tagged[ti.Int8, "x"],
    ti.Decimal(10, 2),
    ti.Optional[ti.Int64],
)


def _column(type_: Any) -> Column:
    (column,) = resolved("OUTPUTS['output']", [("x", type_, False)])
    return column


@pytest.mark.parametrize(("name", "fits", "too_wide"), INTEGERS)
def test_no_integer_is_wider_than_its_column(
    name: str, fits: types.DataType, too_wide: types.DataType
) -> None:
    assert unwritable(_column(name), types.ByteType()) is None
    assert unwritable(_column(name), fits) is None
    assert f"the table has {name}: cast it" in str(unwritable(_column(name), too_wide))


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("uuid", "declare utf8"),
        (ti.Decimal(10, 2), "store int64 minor units"),
        (ti.List[ti.Decimal(10, 2)], "store int64 minor units"),
        (ti.Struct["a" : ti.Int64, "b" : ti.Optional[ti.Date]], "dates and times inside"),
        (ti.Dict[ti.Utf8, ti.Tuple[ti.Timestamp]], "dates and times inside"),
        (ti.Tagged[ti.Utf8, "text"], 'cannot write ti.Tagged[ti.Utf8, "text"]'),
    ],
    ids=str,
)
def test_a_type_that_the_sink_never_writes_is_refused(type_: Any, said: str) -> None:
    assert said in str(never_written(_column(type_)))


@pytest.mark.parametrize("column", all_types.COLUMNS, ids=lambda column: column.name)
def test_the_types_of_the_round_trip_are_written(column: Column) -> None:
    assert never_written(_column(column.type)) is None


@pytest.mark.parametrize("type_", [*NAMED_TYPES.values(), *COMPOSITES], ids=str)
def test_a_type_is_spelled_as_tables_py_may_write_it(type_: Any) -> None:
    text = spelled(type_)
    assert NAMED_TYPES.get(text, None) == type_ or eval(text, {"ti": ti}) == type_


@pytest.mark.parametrize(
    ("declared", "stored", "said"),
    [
        (Column("x", ti.Int64, required=True), Column("x", ti.Int64), "may hold null, tables.py"),
        (Column("x", ti.Int64), Column("x", ti.Int64, required=True), "lacks required=True"),
        (Column("x", ti.Int64), Column("x", ti.Int32), "the table has int32, tables.py says int64"),
        (Column("x", ti.Yson), Column("x", ti.List[ti.Utf8]), "the table has ti.List[ti.Utf8], "),
        (Column("x", ti.Int64), Column("x", ti.Int64, key=True), "key columns are x, those of "),
    ],
    ids=["null", "required", "type", "composite", "key"],
)
def test_a_difference_names_both_sides_in_the_words_of_tables_py(
    declared: Column, stored: Column, said: str
) -> None:
    (line,) = differences(table_schema([declared]), table_schema([stored]))
    assert said in line
    assert "Optional<" not in line
    assert differences(table_schema([declared]), table_schema([declared])) == []


def test_an_output_of_outputs_is_told_to_correct_that_function() -> None:
    assert "outputs() gives" in str(unwritable(_column("int8"), types.LongType(), "outputs()"))


def test_a_time_is_cast_to_text_and_not_to_bytes() -> None:
    """Spark has no such cast."""
    text = str(unwritable(_column("string"), types.TimestampType()))
    assert 'cast it, .cast("string")' in text
