"""YOURS. transform() alone: rows in, rows out; without a stream every window comes out."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.frames import assert_rows, events_frame


def test_every_earthquake_is_counted_in_its_minute(
    spark: SparkSession, context: JobContext
) -> None:
    job = context.job
    rows = SAMPLE.make(500)
    result = job.transform(events_frame(spark, context, rows))
    assert_rows(context, result, SAMPLE.wanted(job, [*rows, *SAMPLE.closing(job, rows)]))
