"""YOURS. transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.frames import assert_rows, events_frame


def test_every_row_comes_out_as_expected(spark: SparkSession, connection: Connection) -> None:
    job = connection.job
    rows = SAMPLE.make(500)
    result = job.transform(events_frame(spark, connection, rows))
    assert_rows(connection, result, SAMPLE.wanted(job, rows))
