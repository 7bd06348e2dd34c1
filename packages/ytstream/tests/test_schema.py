"""A column that SPYT's sink would write wrongly, or not at all, is known before the first batch."""

from __future__ import annotations

from typing import Any

import pytest
import yt.type_info as ti
from pyspark.sql import types

from packages.ytstream.tests import all_types
from ytstream import Column
from ytstream.columns import resolved
from ytstream.schema import never_written, unwritable

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


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("uuid", "declare utf8"),
        (ti.Decimal(10, 2), "store int64 minor units"),
        (ti.List[ti.Decimal(10, 2)], "store int64 minor units"),
        (ti.Struct["a" : ti.Int64, "b" : ti.Optional[ti.Date]], "dates and times inside"),
        (ti.Dict[ti.Utf8, ti.Tuple[ti.Timestamp]], "dates and times inside"),
        (ti.Tagged[ti.Utf8, "text"], "cannot write type"),
    ],
    ids=str,
)
def test_a_type_that_the_sink_never_writes_is_refused(type_: Any, said: str) -> None:
    assert said in str(never_written(_column(type_)))


@pytest.mark.parametrize("column", all_types.COLUMNS, ids=lambda column: column.name)
def test_the_types_of_the_round_trip_are_written(column: Column) -> None:
    assert never_written(_column(column.type)) is None
