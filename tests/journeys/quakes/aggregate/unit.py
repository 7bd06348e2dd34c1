"""YOURS. REJECT and transform() alone: rows in, rows out."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.frames import assert_rows, output_frames


def test_every_earthquake_is_in_the_totals_of_its_class(
    spark: SparkSession, connection: Connection
) -> None:
    rows = SAMPLE.make(500)
    frames = output_frames(spark, connection, rows)
    for name in ("output", "rejected"):
        assert_rows(connection, frames[name], SAMPLE.wanted(connection.job, rows, name), name)
