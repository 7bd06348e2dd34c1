"""The plan of the rows; test_mistakes.py has the plans that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.helpers import (
    ContextOf,
    StreamOf,
    another_process,
    die_between_the_logs,
    refusal,
)
from ytstream import JobError
from ytstream.query import pipeline
from ytstream.spark.spark_errors import explained_spark
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_the_fence_stands_before_the_rows_of_transactional_alone(
    provisioned_of: ContextOf, spark: SparkSession, guarantee: str
) -> None:
    context = provisioned_of(guarantee)
    rows = context.guarantee.fenced(pipeline.flow_of(spark, context).rows)
    plan = rows._jdf.queryExecution().analyzed().toString()
    assert ("fence: a task was started a second time" in plan) == (guarantee == "transactional")


def test_several_queues_are_told_apart_under_every_guarantee(
    provisioned_of: ContextOf, spark: SparkSession
) -> None:
    from ytstream.spark.source import events

    assert events(spark, provisioned_of("transactional", "map", 2)).columns[0] == "queue_id"


def _in_two_parts(transform: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    """Return the same transformation, of the rows of two halves that are united again."""

    def transformed(events: DataFrame, *others: Any) -> DataFrame:
        is_even = F.col("auction") % 2 == 0
        return transform(events.filter(is_even).union(events.filter(~is_even)), *others)

    return transformed


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("guarantee", "processing", "queues"),
    [("transactional", "map", 2), ("at_least_once", "map", 1), ("transactional", "window", 2)],
)
def test_rows_may_be_united_with_themselves(
    stream_of: StreamOf, guarantee: str, processing: str, queues: int
) -> None:
    """Spark's offset log then has each queue twice. The second start repairs a copy of the log."""
    stream = stream_of(guarantee, processing, queues)
    stream.redeclare(transform=_in_two_parts(stream.context.job.transform))
    stream.send(400)
    stream.drain()
    stream.send(400)
    again = another_process(stream)
    again.close()
    assert stream.is_exact()


@pytest.mark.thorough
def test_a_gap_is_skipped_where_the_log_has_each_queue_twice(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "deduplicate", 2)
    stream.redeclare(transform=_in_two_parts(stream.context.job.transform))
    stream.send(400)
    stream.drain()
    stream.send(40)
    del stream.sent[-80:]
    for queue in stream.settings.queues:
        for partition, upper in enumerate(_ends(stream, queue)):
            stream.client.trim_rows(queue, partition, upper)
    stream.configure(on_data_loss="skip")
    stream.send(400)
    another_process(stream).drain()
    assert stream.is_exact()


@pytest.mark.thorough
def test_a_batch_that_was_planned_stays_where_the_log_has_the_queue_twice(
    stream_of: StreamOf, cluster: Running
) -> None:
    stream = stream_of("transactional", "window")
    stream.redeclare(transform=_in_two_parts(stream.context.job.transform))
    stream.send(400)
    stream.drain()
    stream.send(400)
    batch = die_between_the_logs(stream, cluster)
    again = another_process(stream)
    again.recover()
    assert stream.client.exists(f"{again.folder}/offsets/{batch}")
    again.close()
    assert stream.is_exact()


def _ends(stream: Stream, queue: str) -> list[int]:
    found = stream.client.get_tablet_infos(queue, list(range(4)))["tablets"]
    return [int(info["total_row_count"]) for info in found]


@pytest.mark.parametrize("what", ["join", "other", "others", "alone"])
def test_streams_beside_the_rows_are_refused(stream_of: StreamOf, what: str) -> None:
    stream = stream_of("at_least_once", "window")
    rate = stream.spark.readStream.format("rate").load()

    def transform(events: DataFrame) -> DataFrame:
        rows = events.withWatermark("date_time", "1 minute")
        if what == "join":
            mine, yours = rows.alias("mine"), rows.alias("yours")
            same = "mine.bidder = yours.bidder and mine.date_time = yours.date_time"
            return mine.join(yours, F.expr(same)).select("mine.*")
        other = rate.select(F.col("value").alias("auction"))
        if what == "others":
            second = stream.spark.readStream.format("rate").load()
            other = other.union(second.select(F.col("value").alias("auction")))
        return other if what == "alone" else rows.select("auction").union(other)

    stream.redeclare(transform=transform)
    said = refusal(stream.flow)
    assert ("joins the rows with themselves" if what == "join" else "and no other stream") in said


@pytest.mark.parametrize("processing", ["window", "deduplicate", "sessions"])
def test_an_event_time_that_is_no_timestamp_is_refused_in_one_line(
    stream_of: StreamOf, processing: str
) -> None:
    """Spark looks at it in a stream alone: of a batch it drops the watermark."""
    stream = stream_of("transactional", processing)
    transform = stream.context.job.transform

    def of_numbers(events: DataFrame) -> DataFrame:
        return transform(events.withColumn("date_time", F.unix_micros("date_time")))

    stream.redeclare(transform=of_numbers)
    with pytest.raises(JobError, match="date_time") as caught, explained_spark():
        stream.flow()
    what, advice = str(caught.value).splitlines()
    assert 'expected "TIMESTAMP"' in what
    assert advice.startswith("  -> correct transform.py")
