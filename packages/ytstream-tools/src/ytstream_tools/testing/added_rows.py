"""Contributions to totals, added up as the table does it (`aggregate=` in tables.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ytstream.schema.columns import Column, is_totals

_FUNCTIONS: Mapping[str, Callable[[Expression], Expression]] = {
    "sum": F.sum,
    "min": F.min,
    "max": F.max,
    "first": lambda value: F.first(value, ignorenulls=True),
}
"""Nulls are ignored, and texts compare by their bytes, as in the table."""


def added(rows: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return one row of each key; the rows as they are where the table adds nothing up."""
    if not is_totals(columns):
        return rows
    made = [
        _FUNCTIONS[column.aggregate](F.col(f"`{column.name}`"))
        .cast(rows.schema[column.name].dataType)
        .alias(column.name)
        for column in columns
        if column.aggregate is not None
    ]
    keys = [F.col(f"`{column.name}`") for column in columns if column.key]
    return rows.groupBy(*keys).agg(*made)
