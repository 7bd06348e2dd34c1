"""YOURS. transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.frames import assert_rows, output_frames, reference_frame


def test_every_penguin_comes_out_once(spark: SparkSession, connection: Connection) -> None:
    rows = SAMPLE.make(400)
    reference = reference_frame(spark, connection, SAMPLE.reference)
    frames = output_frames(spark, connection, rows, reference)
    for output, frame in frames.items():
        assert_rows(connection, frame, SAMPLE.wanted(connection.job, rows, output), output)
