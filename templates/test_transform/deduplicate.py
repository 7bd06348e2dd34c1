"""transform() alone, on a stream of files: what it drops depends on what came before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from sample import SAMPLE
from ytstream import JobError
from ytstream.job import Connection
from ytstream.query.spark_errors import explained_spark
from ytstream.testing.frames import counted_rows, events_frame


@pytest.fixture
def plain_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The session without SPYT's transactions: no row comes from a queue here."""
    before = spark.conf.get("spark.yt.streaming.transactional", "false")
    spark.conf.set("spark.yt.streaming.transactional", "false")
    yield spark
    spark.conf.set("spark.yt.streaming.transactional", str(before))


def _result(
    spark: SparkSession, connection: Connection, folder: Path, *batches: list[dict[str, Any]]
) -> list[Row]:
    """Return the rows that come out when each batch is one micro-batch."""
    frames = [events_frame(spark, connection, batch) for batch in batches]
    for number, frame in enumerate(frames):
        frame.coalesce(1).write.parquet(f"file://{folder}/in/{number}")
    stream = (
        spark.readStream.schema(frames[0].schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(f"file://{folder}/in/*")
    )
    query = (
        connection.job.transform(stream)
        .writeStream.format("memory")
        .queryName("deduplicated")
        .option("checkpointLocation", f"file://{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return list(spark.table("deduplicated").collect())


def test_an_event_comes_out_once(
    plain_spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    job = connection.job
    rows = SAMPLE.make(600)
    assert len(rows) > 600
    # The second batch holds repeats of the first one's rows.
    result = _result(plain_spark, connection, tmp_path, rows[:300], [*rows[300:], *rows[250:300]])
    assert counted_rows(connection, result) == SAMPLE.wanted(job, rows)
    assert list(result[0].asDict()) == [column.name for column in job.output_columns["output"]]


def test_events_without_an_id_all_pass_and_those_from_the_future_do_not(
    plain_spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    rows = SAMPLE.make(50)
    nameless = [{**row, "event_id": None} for row in rows[:5]] * 2
    future = {**rows[0], "event_id": "f", "date_time": round(time.time() * 1e6) + 3_600_000_000}
    result = _result(plain_spark, connection, tmp_path, [*rows, *nameless, future])
    assert [row.event_id for row in result].count(None) == 10
    assert {row.event_id for row in result} == {None, *(row["event_id"] for row in rows)}
    assert len(result) == 60


def test_a_time_that_is_no_timestamp_is_refused_in_one_line(
    spark: SparkSession, connection: Connection
) -> None:
    events = events_frame(spark, connection, SAMPLE.make(1))
    wrong = events.withColumn("date_time", F.unix_micros("date_time"))
    with pytest.raises(JobError, match="date_time"), explained_spark():
        connection.job.transform(wrong)
