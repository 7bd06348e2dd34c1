"""YOURS. REJECT and transform() alone, on a stream of files: totals go on from batch to batch."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.batches import stream_outputs
from ytstream.testing.frames import assert_outputs, rejected_frames


def test_every_output_is_as_expected(
    spark: SparkSession, context: JobContext, tmp_path: Path
) -> None:
    rows = SAMPLE.make(2_000)
    frames = stream_outputs(spark, context, tmp_path, rows[:1_000], rows[1_000:])
    rejected = rejected_frames(spark, context, rows)
    assert_outputs(context, SAMPLE, rows, {**frames, **rejected})
