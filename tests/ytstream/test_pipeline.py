"""The plan of the rows; test_mistakes.py has the plans that are refused."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.ytstream.helpers import ConnectionOf
from ytstream.query import pipeline

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_the_fence_stands_before_the_rows_of_transactional_alone(
    provisioned_of: ConnectionOf, spark: SparkSession, guarantee: str
) -> None:
    connection = provisioned_of(guarantee)
    rows = connection.guarantee.fenced(pipeline.flow_of(spark, connection).rows)
    plan = rows._jdf.queryExecution().analyzed().toString()
    assert ("fence: a task was started a second time" in plan) == (guarantee == "transactional")


def test_several_queues_are_told_apart_under_every_guarantee(
    provisioned_of: ConnectionOf, spark: SparkSession
) -> None:
    from ytstream.query.source import events

    assert events(spark, provisioned_of("transactional", "map", 2)).columns[0] == "queue_id"
