"""What the analysed plan of transform() tells of its state."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ytstream.connector.transform_plan import countable_states

pytestmark = pytest.mark.spark


def _deduplicated(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicatesWithinWatermark(["value"])


def _per_window(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.window("timestamp", "1 second"), "value").count()


@pytest.mark.parametrize(
    ("transform", "states"),
    [
        (lambda rows: rows, 0),
        (_deduplicated, 1),
        (lambda rows: _deduplicated(_deduplicated(rows)), 2),
        (_per_window, 1),
        (lambda rows: rows.groupBy("value").count(), 1),
        (lambda rows: rows.groupBy(F.session_window("timestamp", "1 second")).count(), 0),
        (lambda rows: rows.agg(F.count("*")), 0),
        (lambda rows: _per_window(_deduplicated(rows)), 0),
        (lambda rows: rows.limit(3), 0),
    ],
    ids=[
        *("none", "deduplication", "two deduplications", "windows", "groups", "sessions"),
        *("a total", "two kinds", "limit"),
    ],
)
def test_the_ledger_counts_states_of_one_kind_that_look_up_each_key(
    spark: SparkSession, transform: Callable[[DataFrame], DataFrame], states: int
) -> None:
    rows = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    assert countable_states(transform(rows)) == states
