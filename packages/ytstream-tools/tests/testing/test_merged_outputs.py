"""Outputs with MERGE in the memory of a test, batch after batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from yt.yson import YsonUint64

from tests.support.helpers import unconnected
from ytstream import REJECTED, Column, newest
from ytstream.job import JobContext
from ytstream_tools.testing.unit_frames import merged_outputs

LARGE = 2**63
"""From here on, Spark's numbers with the bits of a uint64 are negative."""
COLUMNS = [Column("k", "int64", key=True), Column("at", "int64"), Column("n", "uint64")]


def _job(columns: list[Column], rule: Any, transform: Any = lambda rows: rows) -> JobContext:
    """Return a job that lets rows of its queue change one output."""
    context = unconnected("transactional")
    job = replace(
        context.job, queue=[replace(column, key=False) for column in columns],
        outputs={"output": columns, "rejected": REJECTED}, transform=transform,
        merge={"output": rule}, reject={},
    )  # fmt: skip
    return replace(context, job=job)


@pytest.mark.spark
@pytest.mark.thorough
def test_a_tie_is_decided_by_unsigned_numbers(spark: SparkSession) -> None:
    """In one batch, and by the table's row, whichever comes first."""
    if spark.version < "4":
        pytest.skip("Spark 3.5 cannot find the greatest of SPYT's values")
    context = _job(COLUMNS, newest("at"))
    batches = (
        [(1, LARGE + 5), (1, 7), (2, 7), (3, LARGE + 5)],
        [(2, LARGE + 5), (3, 7), (4, None), (4, 0)],
    )
    rows = [
        [{"k": k, "at": 1, "n": None if n is None else YsonUint64(n)} for k, n in batch]
        for batch in batches
    ]
    had, has = merged_outputs(spark, context, rows)
    first = {row["k"]: row["n"] for row in had["output"]}
    assert first == {1: LARGE + 5, 2: 7, 3: LARGE + 5}
    assert {row["k"]: row["n"] for row in has["output"]} == {
        1: LARGE + 5, 2: LARGE + 5, 3: LARGE + 5, 4: 0,
    }  # fmt: skip


@pytest.mark.spark
@pytest.mark.thorough
def test_two_zeros_are_decided_by_their_sign(spark: SparkSession) -> None:
    """Whichever comes first: they are equal, so nothing else would decide."""
    columns = [*COLUMNS[:2], Column("n", "double")]
    rows = [[{"k": k, "at": 1, "n": n}] for k, n in ((1, 0.0), (1, -0.0), (2, -0.0), (2, 0.0))]
    *_, has = merged_outputs(spark, _job(columns, newest("at")), rows)
    assert sorted((row["k"], str(row["n"])) for row in has["output"]) == [(1, "0.0"), (2, "0.0")]


def _counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").agg(F.max("at").alias("at"), F.sum("n").alias("n"))


@pytest.mark.spark
@pytest.mark.thorough
def test_a_function_gets_the_numbers_that_it_has_made(spark: SparkSession) -> None:
    """Also where the rows of the batch have smaller ones: the table holds more than they do."""
    columns = [*COLUMNS[:2], Column("n", "int64")]
    job = _job(columns, _counted, lambda rows: rows.withColumn("n", F.col("n").cast("int")))
    most = 2**31 - 1
    *_, has = merged_outputs(spark, job, [[{"k": 1, "at": 1, "n": most}]] * 3)
    assert [row["n"] for row in has["output"]] == [3 * most]
