"""YOURS. transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.frames import assert_rows, output_frames, reference_frame


def test_every_penguin_comes_out_once(spark: SparkSession, context: JobContext) -> None:
    rows = SAMPLE.make(400)
    reference = reference_frame(spark, context, SAMPLE.reference)
    frames = output_frames(spark, context, rows, reference)
    for output, frame in frames.items():
        assert_rows(context, frame, SAMPLE.wanted(context.job, rows, output), output)
