"""What SPYT's sink would write wrongly, or not at all, is known before the first batch."""

from __future__ import annotations

import pytest
from conftest import Module
from pyspark.sql import types

# Column, the widest type that fits, and the first one that is too wide.
INTEGERS = [
    ("int8", types.ByteType(), types.ShortType()),
    ("int16", types.ShortType(), types.IntegerType()),
    ("int32", types.IntegerType(), types.LongType()),
    ("uint8", types.ShortType(), types.IntegerType()),
    ("uint16", types.IntegerType(), types.LongType()),
    ("uint32", types.LongType(), types.DoubleType()),
]


@pytest.mark.parametrize(("name", "fits", "too_wide"), INTEGERS)
def test_no_integer_is_wider_than_its_column(
    module: Module, name: str, fits: types.DataType, too_wide: types.DataType
) -> None:
    schema = module("schema")
    (column,) = schema.columns("OUTPUT", [("x", name, True)])
    assert schema.unwritable(column, types.ByteType()) is None
    assert schema.unwritable(column, fits) is None
    assert f"the table has {name}: cast it" in schema.unwritable(column, too_wide)


def test_times_inside_composites_are_refused(module: Module) -> None:
    schema = module("schema")
    (column,) = schema.columns("OUTPUT", [("x", "any", False)])
    nested = types.StructType().add("when", types.ArrayType(types.TimestampType()))
    assert "dates and times inside" in schema.unwritable(column, nested)
