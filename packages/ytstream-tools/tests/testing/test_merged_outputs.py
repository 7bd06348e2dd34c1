"""Outputs with MERGE in the memory of a test, batch after batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from yt.yson import YsonUint64

from tests.support.helpers import unconnected
from ytstream import REJECTED, Column, newest
from ytstream_tools.testing.unit_frames import merged_outputs

LARGE = 2**63
"""From here on, Spark's numbers with the bits of a uint64 are negative."""
COLUMNS = [Column("k", "int64", key=True), Column("at", "int64"), Column("n", "uint64")]


@pytest.mark.spark
@pytest.mark.thorough
def test_a_tie_is_decided_by_unsigned_numbers(spark: SparkSession) -> None:
    """In one batch, and by the table's row, whichever comes first."""
    if spark.version < "4":
        pytest.skip("Spark 3.5 cannot find the greatest of SPYT's values")
    context = unconnected("transactional")
    job = replace(
        context.job, queue=[replace(column, key=False) for column in COLUMNS],
        outputs={"output": COLUMNS, "rejected": REJECTED}, transform=lambda rows: rows,
        merge={"output": newest("at")}, reject={},
    )  # fmt: skip
    batches = (
        [(1, LARGE + 5), (1, 7), (2, 7), (3, LARGE + 5)],
        [(2, LARGE + 5), (3, 7), (4, None), (4, 0)],
    )
    rows = [
        [{"k": k, "at": 1, "n": None if n is None else YsonUint64(n)} for k, n in batch]
        for batch in batches
    ]
    had, has = merged_outputs(spark, replace(context, job=job), rows)
    first = {row["k"]: row["n"] for row in had["output"]}
    assert first == {1: LARGE + 5, 2: 7, 3: LARGE + 5}
    assert {row["k"]: row["n"] for row in has["output"]} == {
        1: LARGE + 5, 2: LARGE + 5, 3: LARGE + 5, 4: 0,
    }  # fmt: skip
