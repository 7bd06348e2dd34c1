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


def test_sessions_go_on_from_batch_to_batch_and_close_after_a_pause(
    spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    job = connection.job
    rows = SAMPLE.make(4_000)
    # The last one moves the watermark; a batch without rows then closes what it has passed.
    rows += SAMPLE.closing(job, rows)[:1]
    result = streamed(spark, connection, tmp_path, rows[:1_500], rows[1_500:])
    assert_rows(connection, result, SAMPLE.wanted(job, rows))


def test_the_order_of_bids_makes_no_difference(
    spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    job = connection.job
    rows = SAMPLE.make(500)  # less than LATENESS of event time
    last = SAMPLE.closing(job, rows)[:1]
    result = streamed(spark, connection, tmp_path, rows[1::2], rows[::2][::-1], last)
    assert_rows(connection, result, SAMPLE.wanted(job, [*rows, *last]))


def test_rows_without_a_time_and_from_the_future_are_in_no_session(
    spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    job = connection.job
    rows = SAMPLE.make(200)
    rows += SAMPLE.closing(job, rows)[:1]
    future = round(time.time() * 1e6) + 3_600_000_000
    odd = [{**rows[0], "date_time": None}, {**rows[1], "date_time": future}]
    result = streamed(spark, connection, tmp_path, [*odd, *rows])
    assert_rows(connection, result, SAMPLE.wanted(job, rows))


def test_a_time_that_is_no_timestamp_is_refused_in_one_line(
    spark: SparkSession, connection: Connection
) -> None:
    events = events_frame(spark, connection, SAMPLE.make(1))
    wrong = events.withColumn("date_time", F.unix_micros("date_time"))
    with pytest.raises(JobError, match="date_time"), explained_spark():
        connection.job.transform(wrong)
