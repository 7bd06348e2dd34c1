"""The schema of a Python state comes to a worker as it is, though Spark 4.2 lowers its letters."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import StructType

from ytstream.connector.spark_plan import analysed
from ytstream.connector.state_schema import readable

pytestmark = pytest.mark.spark

STATE = '`Open` array<struct<LastBid: bigint>>, `Счёт` map<string, int>, `"\\u001FX` string'
"""Letters that are lowered, in names and in what Spark writes; a name with what JSON escapes."""


def _session(spark: SparkSession, state: str) -> list[str]:
    """Return the schemas of the states in a plan, as Spark sends them."""
    rows = spark.readStream.format("rate").load().groupBy("value")
    made = rows.applyInPandasWithState(
        lambda key, frames, state: iter(()), "n long", state, "append",
        GroupStateTimeout.NoTimeout,
    )  # fmt: skip
    nodes = [*analysed(readable(made)).walk()]
    return [str(node.jvm.stateType().json()) for node in nodes if node.state_function]


def test_it_survives_lower_case(spark: SparkSession) -> None:
    (sent,) = _session(spark, STATE)
    assert StructType.fromJson(json.loads(sent.lower())) == spark.createDataFrame([], STATE).schema
