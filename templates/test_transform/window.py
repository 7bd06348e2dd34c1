"""YOURS. REJECT and transform() alone: rows in, rows out, no stream.

Without a stream there is no watermark: every window comes out.
"""

from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sample import SAMPLE
from ytstream import JobError
from ytstream.job import Connection
from ytstream.query.spark_errors import explained_spark
from ytstream.testing.frames import assert_rows, events_frame, output_frames


def test_every_bid_is_counted_in_its_window(spark: SparkSession, connection: Connection) -> None:
    job = connection.job
    rows = SAMPLE.make(2_000)
    frames = output_frames(spark, connection, rows)
    wanted = SAMPLE.wanted(job, [*rows, *SAMPLE.closing(job, rows)])
    assert_rows(connection, frames["output"], wanted)
    rejected = SAMPLE.wanted(job, rows, "rejected")
    assert_rows(connection, frames["rejected"], rejected, "rejected")


def test_rows_without_a_time_and_from_the_future_are_rejected(
    spark: SparkSession, connection: Connection
) -> None:
    row, hour_us = SAMPLE.make(1)[0], 3_600_000_000
    times = [None, round(time.time() * 1e6) + hour_us]
    odd = [{**row, "date_time": found} for found in times]
    frames = output_frames(spark, connection, odd)
    assert not frames["output"].collect()
    reasons = [found.reason for found in frames["rejected"].collect()]
    assert reasons == ["without event time", "from the future"]


def test_a_time_that_is_no_timestamp_is_refused_in_one_line(
    spark: SparkSession, connection: Connection
) -> None:
    events = events_frame(spark, connection, SAMPLE.make(1))
    wrong = events.withColumn("date_time", F.unix_micros("date_time"))
    with pytest.raises(JobError, match="date_time"), explained_spark():
        connection.job.transform(wrong)
