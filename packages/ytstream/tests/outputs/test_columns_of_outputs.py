"""Columns of rows that OUTPUTS does not have, by the plan alone; no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from tests.support.helpers import refusal
from ytstream.outputs.output_frames import verify_columns
from ytstream.schema.columns import Column, resolved


@dataclass
class Rows:
    """As much of a DataFrame as is looked at."""

    schema: StructType

    @property
    def columns(self) -> list[str]:
        return self.schema.fieldNames()


@pytest.mark.parametrize("function", [None, "sum"])
def test_a_column_more_may_be_kept_but_not_without_its_function(function: str | None) -> None:
    columns = resolved(
        "", [Column("k", "int64", key=True), Column("n", "int64", aggregate=function)]
    )
    long = [StructField(name, LongType()) for name in ("k", "n")]
    rows = cast(Any, Rows(StructType([*long, StructField("more", IntegerType())])))
    text = refusal(lambda: verify_columns("output", rows, columns, "transform()"))
    assert "column more: returned by transform(), not in OUTPUTS" in text
    assert ('add Column("more", "int32") there' in text) == (function is None)
