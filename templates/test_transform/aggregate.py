"""YOURS. REJECT and transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.batches import streamed
from ytstream.testing.frames import assert_rows, output_frames


def test_all_bids_of_an_auction_are_in_its_totals(
    spark: SparkSession, connection: Connection
) -> None:
    rows = SAMPLE.make(2_000)
    frames = output_frames(spark, connection, rows)
    for name in ("output", "rejected"):
        assert_rows(connection, frames[name], SAMPLE.wanted(connection.job, rows, name), name)


def test_totals_go_on_from_batch_to_batch(
    spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    rows = SAMPLE.make(2_000)
    given = streamed(spark, connection, tmp_path, rows[:1_000], rows[1_000:])
    # Totals only grow, so the newest row of an auction is the one with the most bids.
    newest = given.groupBy("auction").agg({"bids": "max", "total": "max", "highest": "max"})
    result = newest.toDF("auction", *(name[4:-1] for name in newest.columns[1:]))
    assert_rows(connection, result, SAMPLE.wanted(connection.job, rows))
