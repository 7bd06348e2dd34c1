"""A help for outputs() of transform.py: one row of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a job can be declared without Spark
    from pyspark.sql import DataFrame


def latest(rows: DataFrame, key: Sequence[str], by: str) -> DataFrame:
    """Return, of the rows with the same ``key``, the one with the greatest ``by``; null is least.

    Which of two rows with an equal ``by`` stays is not defined. ``rows`` are those of one
    micro-batch, as outputs() gets them; in a sorted table a row of a later batch replaces them,
    whatever its ``by``.
    """
    from pyspark.sql import functions as F

    # max_by skips nulls; wrapping `by` in a struct keeps those rows, ordered first.
    newest = F.max_by(F.struct(*rows.columns), F.struct(by)).alias("newest")
    return rows.groupBy(*key).agg(newest).select("newest.*")
