"""idempotent admits a plan that is 1:1 and keeps the key, and names each other one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.ytstream.helpers import ConnectionOf, refusal
from ytstream.job import Connection
from ytstream.query.source import events

pytestmark = pytest.mark.spark

BREAKS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "aggregation": (
        lambda rows: rows.groupBy("tablet_index", "row_index").agg(F.first("price_eur")),
        "Aggregate",
    ),
    "explode": (
        lambda rows: rows.withColumn("n", F.explode(F.array(F.lit(1), F.lit(2)))).drop("n"),
        "Generate",
    ),
    "deduplication": (lambda rows: rows.dropDuplicates(["auction"]), "Deduplicate"),
    "limit": (lambda rows: rows.limit(10), "Limit"),
    "sampling": (lambda rows: rows.sample(0.5), "Sample"),
    "join": (lambda rows: rows.join(rows.select("event_id"), "event_id"), "join:unique-key"),
    "self-union": (lambda rows: rows.union(rows), "united with itself"),
    "random value": (lambda rows: rows.withColumn("auction", F.rand()), "rand"),
    "random filter": (lambda rows: rows.filter(F.rand() < 0.5), "rand"),
    "uuid": (lambda rows: rows.withColumn("extra", F.expr("uuid()")), "uuid"),
    "computed key": (
        lambda rows: rows.withColumn("row_index", F.col("row_index") + 1),
        "row_index is computed",
    ),
    "swapped key": (
        lambda rows: rows.select(
            F.col("row_index").alias("tablet_index"),
            F.col("tablet_index").alias("row_index"),
            *(name for name in rows.columns if name not in ("tablet_index", "row_index")),
        ),
        "computed or renamed",
    ),
    "lost key": (lambda rows: rows.drop("row_index"), "row_index is lost"),
}

#: With several queues alone: equal positions of two queues would share a key.
BREAKS_OF_SEVERAL: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "lost queue": (lambda rows: rows.drop("queue_id"), "queue_id is lost"),
    "computed queue": (
        lambda rows: rows.withColumn("queue_id", F.upper("queue_id")),
        "queue_id is computed",
    ),
}


def _rows(spark: SparkSession, connection: Connection) -> DataFrame:
    return connection.job.transform(events(spark, connection))


@pytest.mark.parametrize(
    ("queues", "kind"),
    [
        *((1, kind) for kind in BREAKS),
        *((2, kind) for kind in BREAKS_OF_SEVERAL),
        *((2, kind) for kind in ("computed key", "lost key", "self-union")),
    ],
)
def test_a_plan_that_is_not_one_to_one_is_refused(
    provisioned_of: ConnectionOf, spark: SparkSession, queues: int, kind: str
) -> None:
    connection = provisioned_of("idempotent", "map", queues)
    change, said = (BREAKS | BREAKS_OF_SEVERAL)[kind]
    rows = change(_rows(spark, connection))
    assert said in refusal(lambda: connection.guarantee.admit(rows, connection.settings))


@pytest.mark.parametrize("queues", [1, 2])
def test_a_plan_that_is_one_to_one_passes(
    provisioned_of: ConnectionOf, spark: SparkSession, queues: int
) -> None:
    connection = provisioned_of("idempotent", "map", queues)
    rows = _rows(spark, connection)
    changed = (
        rows.filter(F.col("price_eur") > 10)
        .withColumn("extra", F.upper("extra"))
        .observe("seen", F.count(F.lit(1)).alias("rows"))
        .repartition(2)
    )
    assert connection.guarantee.admit(changed, connection.settings).columns == rows.columns
