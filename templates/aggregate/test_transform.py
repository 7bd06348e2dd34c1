"""YOURS. A test of REJECT and transform(), without a stream. Rows are added up as in the table."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.frames import assert_outputs, output_frames


def test_every_output_is_as_expected(spark: SparkSession, context: JobContext) -> None:
    rows = SAMPLE.make(2_000)
    assert_outputs(context, SAMPLE, rows, output_frames(spark, context, rows))
