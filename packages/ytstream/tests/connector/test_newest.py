"""The row of each key with the greatest rank: an operator of our own, for MERGE."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from ytstream.connector import compile_java, key_lookup

pytestmark = pytest.mark.spark

RANK = """named_struct(
    'by', IF(id % 11 = 0, NULL, id * 7919 % 13), 'text', CAST(id % 17 AS STRING),
    'number', IF(id % 5 = 0, DOUBLE('NaN'), DOUBLE(id % 7)), 'parts', array(id % 3, NULL)
)"""


def test_the_row_that_stays_is_the_one_of_max(spark: SparkSession) -> None:
    assert compile_java.unavailable(spark) == ""
    text = "IF(id % 31 = 0, NULL, repeat(CAST(id % 31 AS STRING), 3)) AS text"
    rows = spark.range(1_000).selectExpr(text, "id % 2 AS `a b`", f"{RANK} AS rank")
    parted = rows.repartition(3, "text", "`a b`")
    found = key_lookup.newest(parted, ["text", "a b"], "rank").collect()
    wanted = rows.groupBy("text", "`a b`").agg({"rank": "max"}).collect()
    assert len(found) == 62
    assert {*map(repr, map(tuple, found))} == {*map(repr, map(tuple, wanted))}
