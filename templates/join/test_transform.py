"""YOURS. REJECT and transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.frames import assert_outputs, output_frames, reference_frame


def test_every_output_is_as_expected(spark: SparkSession, connection: Connection) -> None:
    rows = SAMPLE.make(500)
    reference = reference_frame(spark, connection, SAMPLE.reference)
    frames = output_frames(spark, connection, rows, reference)
    assert_outputs(connection, SAMPLE, rows, frames)
