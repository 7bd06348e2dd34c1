"""YOURS. REJECT and transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.frames import assert_rows, output_frames


def test_every_row_comes_out_as_expected(spark: SparkSession, connection: Connection) -> None:
    rows = SAMPLE.make(500)
    frames = output_frames(spark, connection, rows)
    assert_rows(connection, frames["output"], SAMPLE.wanted(connection.job, rows))


def test_every_row_that_makes_no_sense_is_rejected(
    spark: SparkSession, connection: Connection
) -> None:
    rows = SAMPLE.make(500)
    frames = output_frames(spark, connection, rows)
    wanted = SAMPLE.wanted(connection.job, rows, "rejected")
    assert_rows(connection, frames["rejected"], wanted, "rejected")
