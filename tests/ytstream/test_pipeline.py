"""Rows of the queues become rows of the output, or one line says why they cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.ytstream.helpers import ConnectionOf, refusal
from ytstream.query import pipeline

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "mistake", [KeyError("price"), ZeroDivisionError("division by zero"), None]
)
def test_a_mistake_in_transform_is_one_line(
    provisioned_of: ConnectionOf, spark: SparkSession, mistake: Exception | None
) -> None:
    def transform(*_: object) -> Any:
        if mistake is not None:
            raise mistake

    connection = provisioned_of("transactional")
    changed = replace(connection, job=replace(connection.job, transform=transform))
    assert "transform() failed" in refusal(lambda: pipeline.rows_of(spark, changed))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows.drop("price_eur"), "column price_eur: not returned by transform()"),
        (lambda rows: rows.withColumn("n", F.lit(1)), "column n: returned by transform(), not in"),
        (lambda rows: rows.withColumn("bidder", F.lit("x")), "column bidder: transform() gives st"),
        (lambda rows: rows.select("*", "bidder"), "duplicate column name"),
    ],
    ids=["missing", "extra", "type", "duplicate"],
)
def test_columns_that_the_output_does_not_have_are_refused(
    provisioned_of: ConnectionOf,
    spark: SparkSession,
    change: Callable[[DataFrame], DataFrame],
    said: str,
) -> None:
    connection = provisioned_of("at_least_once")
    transform = connection.job.transform
    job = replace(connection.job, transform=lambda events: change(transform(events)))
    text = refusal(lambda: pipeline.rows_of(spark, replace(connection, job=job)))
    assert said in text
    assert "nothing was started" in text


@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_the_fence_stands_before_the_rows_of_transactional_alone(
    provisioned_of: ConnectionOf, spark: SparkSession, guarantee: str
) -> None:
    rows = pipeline.rows_of(spark, provisioned_of(guarantee))
    plan = rows._jdf.queryExecution().analyzed().toString()
    assert ("fence: a task was started a second time" in plan) == (guarantee == "transactional")


def test_several_queues_are_told_apart_under_every_guarantee(
    provisioned_of: ConnectionOf, spark: SparkSession
) -> None:
    from ytstream.query.source import events

    assert events(spark, provisioned_of("transactional", "map", 2)).columns[0] == "queue_id"
