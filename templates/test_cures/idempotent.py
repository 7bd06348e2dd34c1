"""What breaks SPYT's own mode, with the job's cure and without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from stream import wait_for_failure


def test_a_batch_that_runs_again_changes_nothing(stream: Any, cluster: Any) -> None:
    """A write fails in the second batch; the first writes of that batch are in the output
    already."""
    stream.settings = replace(stream.settings, max_rows_per_partition=500)
    stream.send(6_000)
    stream.recover()
    cluster.client.faults.add(
        method="ModifyRows",
        where={"path": stream.settings.output},
        skip=4 * len(stream.settings.queues) + 2,
        times=None,
        action="fail",
        error={"code": 1, "message": "the tablet is on strike"},
    )
    with stream.running() as query:
        wait_for_failure(query)
    cluster.client.faults.clear()
    stream.recover()
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)


def _first(rows: DataFrame) -> DataFrame:
    return rows.limit(10)


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
    "limit": (_first, "Limit"),
    "sampling": (lambda rows: rows.sample(0.5), "Sample"),
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


@pytest.mark.parametrize("kind", BREAKS)
def test_what_is_not_one_to_one_is_refused(stream: Any, kind: str) -> None:
    change, said = BREAKS[kind]
    guarantee, pipeline = stream.module("guarantee"), stream.module("pipeline")
    rows = pipeline.transform(stream.module("events").events(stream.spark, stream.settings))
    with pytest.raises(stream.module("errors").JobError, match=said):
        guarantee.admit(change(rows), stream.settings)


def test_what_is_one_to_one_passes(stream: Any) -> None:
    guarantee, pipeline = stream.module("guarantee"), stream.module("pipeline")
    rows = pipeline.transform(stream.module("events").events(stream.spark, stream.settings))
    changed = (
        rows.filter(F.col("price_eur") > 10)
        .withColumn("extra", F.upper("extra"))
        .observe("seen", F.count(F.lit(1)).alias("rows"))
        .repartition(2)
    )
    assert guarantee.admit(changed, stream.settings).columns == rows.columns


def test_an_unsorted_output_is_refused(stream: Any) -> None:
    """Such a table would take every repeat as a new row."""
    output = stream.settings.output
    schema = [
        {name: value for name, value in column.items() if name != "sort_order"}
        for column in stream.client.get(f"{output}/@schema")
    ]
    stream.client.remove(output)
    stream.client.create("table", output, attributes={"dynamic": True, "schema": schema})
    stream.client.mount_table(output, sync=True)
    with pytest.raises(stream.module("errors").JobError, match="key columns: is none, wanted"):
        stream.module("provision").provision(stream.client, stream.settings)
