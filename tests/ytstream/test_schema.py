"""A column that SPYT's sink would write wrongly, or not at all, is known before the first batch."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types

from ytstream import Column
from ytstream.columns import resolved
from ytstream.schema import unwritable

# Column, the widest type that fits, and the first one that is too wide.
INTEGERS = [
    ("int8", types.ByteType(), types.ShortType()),
    ("int16", types.ShortType(), types.IntegerType()),
    ("int32", types.IntegerType(), types.LongType()),
    ("uint8", types.ShortType(), types.IntegerType()),
    ("uint16", types.IntegerType(), types.LongType()),
    ("uint32", types.LongType(), types.DoubleType()),
]


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


def test_times_inside_composites_are_refused() -> None:
    nested = types.StructType().add("when", types.ArrayType(types.TimestampType()))
    assert "dates and times inside" in str(unwritable(_column("any"), nested))


def test_a_uuid_is_refused_with_the_type_to_use() -> None:
    assert "declare utf8" in str(unwritable(_column("uuid"), types.StringType()))
