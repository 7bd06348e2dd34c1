"""YOURS. transform() alone: what it drops of two batches."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.batches import streamed
from ytstream.testing.frames import assert_rows


def test_a_penguin_is_kept_once(spark: SparkSession, context: JobContext, tmp_path: Path) -> None:
    job = context.job
    rows = SAMPLE.make(400)
    assert len(rows) > 400
    result = streamed(spark, context, tmp_path, rows[:200], rows[200:])
    assert_rows(context, result, SAMPLE.wanted(job, rows))
