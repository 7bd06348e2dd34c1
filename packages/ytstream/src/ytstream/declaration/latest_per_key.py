"""A help for outputs() of transform.py: one row of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a job can be declared without Spark
    from pyspark.sql import DataFrame


def latest(rows: DataFrame, key: Sequence[str], by: str) -> DataFrame:
    """Return one row for each ``key``: the one with the greatest ``by``. Null is the least.

    If two rows have the same ``by``, it is undefined which one is kept. In a sorted table, a row of
    a later batch replaces an earlier one with the same key, whatever its ``by``.

    Args:
        rows: the rows of one micro-batch, as outputs() gets them
        key: the names of the columns that tell rows apart
        by: the name of the column whose greatest value wins
    """
    from pyspark.sql import functions as F

    # max_by skips nulls; wrapping `by` in a struct keeps those rows, ordered first.
    newest = F.max_by(F.struct(*rows.columns), F.struct(by)).alias("newest")
    return rows.groupBy(*key).agg(newest).select("newest.*")
