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
    rows = SAMPLE.make(4_000)
    # The last one moves the watermark; a batch without rows then writes what it has passed.
    rows += SAMPLE.closing(context.job, rows)[:1]
    frames = stream_outputs(spark, context, tmp_path, rows[:1_500], rows[1_500:])
    rejected = rejected_frames(spark, context, rows)
    assert_outputs(context, SAMPLE, rows, {**frames, **rejected})


def test_the_order_of_a_batch_makes_no_difference(
    spark: SparkSession, context: JobContext, tmp_path: Path
) -> None:
    rows = SAMPLE.make(500)
    last = SAMPLE.closing(context.job, rows)[:1]
    frames = stream_outputs(spark, context, tmp_path, rows[::-1], last)
    assert_outputs(context, SAMPLE, [*rows, *last], frames)


def test_rows_from_the_future_do_not_move_the_watermark(
    spark: SparkSession, context: JobContext, tmp_path: Path
) -> None:
    rows = SAMPLE.make(1_000)
    rows += SAMPLE.closing(context.job, rows)[:1]
    first = [*SAMPLE.future(context.job), *rows[:500]]
    frames = stream_outputs(spark, context, tmp_path, first, rows[500:])
    assert_outputs(context, SAMPLE, rows, frames)
