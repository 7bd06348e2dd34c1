"""YOURS. REJECT and transform() alone: rows in, rows out."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.frames import assert_rows, output_frames


def test_every_earthquake_is_in_the_totals_of_its_class(
    spark: SparkSession, context: JobContext
) -> None:
    rows = SAMPLE.make(500)
    frames = output_frames(spark, context, rows)
    for name in ("output", "rejected"):
        assert_rows(context, frames[name], SAMPLE.wanted(context.job, rows, name), name)
