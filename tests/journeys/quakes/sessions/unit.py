"""YOURS. transform() alone, on a stream of files: a swarm may go on from batch to batch."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.batches import streamed
from ytstream.testing.frames import assert_rows


def test_swarms_go_on_from_batch_to_batch(
    spark: SparkSession, context: JobContext, tmp_path: Path
) -> None:
    job = context.job
    rows = SAMPLE.make(1_500)
    rows += SAMPLE.closing(job, rows)[:1]
    result = streamed(spark, context, tmp_path, rows[:700], rows[700:])
    assert_rows(context, result, SAMPLE.wanted(job, rows))
