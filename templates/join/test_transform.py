"""YOURS. A test of REJECT and transform(), without a stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.frames import assert_outputs, output_frames, reference_frame


def test_every_output_is_as_expected(spark: SparkSession, context: JobContext) -> None:
    rows = SAMPLE.make(500)
    reference = reference_frame(spark, context, SAMPLE.reference)
    frames = output_frames(spark, context, rows, reference)
    assert_outputs(context, SAMPLE, rows, frames)
