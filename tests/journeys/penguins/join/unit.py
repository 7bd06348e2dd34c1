"""YOURS. transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.frames import assert_rows, events_frame, reference_frame


def test_every_penguin_comes_out_once(spark: SparkSession, connection: Connection) -> None:
    job = connection.job
    rows = SAMPLE.make(400)
    reference = reference_frame(spark, connection, SAMPLE.reference)
    result = job.transform(events_frame(spark, connection, rows), reference)
    assert_rows(connection, result, SAMPLE.wanted(job, rows))
