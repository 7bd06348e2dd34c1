"""YOURS. transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.frames import assert_rows, events_frame, reference_frame


def test_every_row_comes_out_once_with_what_is_known_of_its_auction(
    spark: SparkSession, connection: Connection
) -> None:
    job = connection.job
    rows = SAMPLE.make(500)
    # A row without a key matches nothing, not even an auction that is null.
    nameless = {"auction": None, "category": "no auction's", "seller": 0}
    reference = reference_frame(spark, connection, [*SAMPLE.reference, nameless])
    result = job.transform(events_frame(spark, connection, rows), reference)
    assert_rows(connection, result, SAMPLE.wanted(job, rows))
    assert any(row.category is None for row in result.collect())
