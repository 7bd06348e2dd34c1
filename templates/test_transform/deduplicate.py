"""YOURS. REJECT and transform() alone, on a stream of files: the result depends on earlier ones."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sample import SAMPLE
from ytstream import JobError
from ytstream.job import Connection
from ytstream.query.spark_errors import explained_spark
from ytstream.testing.batches import streamed
from ytstream.testing.frames import assert_rows, events_frame


def test_an_event_comes_out_once(
    spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    job = connection.job
    rows = SAMPLE.make(600)
    assert len(rows) > 600
    # The second batch holds repeats of the first one's rows.
    result = streamed(spark, connection, tmp_path, rows[:300], [*rows[300:], *rows[250:300]])
    assert_rows(connection, result, SAMPLE.wanted(job, rows))


def test_events_without_an_id_all_pass_and_those_from_the_future_do_not(
    spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    rows = SAMPLE.passing(connection.job, SAMPLE.make(50))
    nameless = [{**row, "event_id": None} for row in rows[:5]] * 2
    future = {**rows[0], "event_id": "f", "date_time": round(time.time() * 1e6) + 3_600_000_000}
    result = streamed(spark, connection, tmp_path, [*rows, *nameless, future])
    found = [row.event_id for row in result.collect()]
    assert found.count(None) == 10
    assert {*found} == {None, *(row["event_id"] for row in rows)}
    assert len(found) == len(rows) + 10


def test_a_time_that_is_no_timestamp_is_refused_in_one_line(
    spark: SparkSession, connection: Connection
) -> None:
    events = events_frame(spark, connection, SAMPLE.make(1))
    wrong = events.withColumn("date_time", F.unix_micros("date_time"))
    with pytest.raises(JobError, match="date_time"), explained_spark():
        connection.job.transform(wrong)
