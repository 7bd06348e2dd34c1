"""YOURS. REJECT and transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.frames import assert_rows, output_frames, reference_frame


def test_every_row_comes_out_once_with_what_is_known_of_its_auction(
    spark: SparkSession, connection: Connection
) -> None:
    rows = SAMPLE.make(500)
    # A row without a key matches nothing, not even an auction that is null.
    nameless = {"auction": None, "category": "no auction's", "seller": 0}
    reference = reference_frame(spark, connection, [*SAMPLE.reference, nameless])
    result = output_frames(spark, connection, rows, reference)["output"]
    assert_rows(connection, result, SAMPLE.wanted(connection.job, rows))
    assert any(row.category is None for row in result.collect())


def test_every_row_that_makes_no_sense_is_rejected(
    spark: SparkSession, connection: Connection
) -> None:
    rows = SAMPLE.make(500)
    reference = reference_frame(spark, connection, SAMPLE.reference)
    frames = output_frames(spark, connection, rows, reference)
    wanted = SAMPLE.wanted(connection.job, rows, "rejected")
    assert_rows(connection, frames["rejected"], wanted, "rejected")
