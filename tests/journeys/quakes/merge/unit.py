"""YOURS. REJECT, transform() and MERGE alone, on a stream of files: batches change one table."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.batches import stream_outputs
from ytstream.testing.frames import assert_outputs, rejected_frames


def test_the_last_strong_earthquake_stays_in_whatever_order_they_come(
    spark: SparkSession, context: JobContext, tmp_path: Path
) -> None:
    rows = SAMPLE.make(900)
    frames = stream_outputs(spark, context, tmp_path, rows[300:], rows[:300])
    rejected = rejected_frames(spark, context, rows)
    assert_outputs(context, SAMPLE, rows, {**frames, **rejected})
