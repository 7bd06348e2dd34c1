"""YOURS. REJECT and transform() alone, on a stream of files: the result depends on earlier ones."""

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
    rows = SAMPLE.make(600)
    first, second = rows[:300], rows[300:]
    # The second batch begins with a repeat of the first one's last row.
    second.insert(0, dict(SAMPLE.passing(context.job, first)[-1]))
    rows = [*first, *second]
    frames = stream_outputs(spark, context, tmp_path, first, second)
    rejected = rejected_frames(spark, context, rows)
    assert_outputs(context, SAMPLE, rows, {**frames, **rejected})


def test_rows_from_the_future_do_not_move_the_watermark(
    spark: SparkSession, context: JobContext, tmp_path: Path
) -> None:
    rows = SAMPLE.make(200)
    first = [*SAMPLE.future(context.job), *rows[:100]]
    frames = stream_outputs(spark, context, tmp_path, first, rows[100:])
    assert_outputs(context, SAMPLE, rows, frames)
