"""YOURS. REJECT, transform() and MERGE alone, on a stream of files: batches change one table."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.batches import stream_outputs
from ytstream.testing.frames import assert_outputs, rejected_frames


def test_the_newest_bid_stays_in_whatever_order_bids_come(
    spark: SparkSession, context: JobContext, tmp_path: Path
) -> None:
    rows = SAMPLE.make(2_000)
    frames = stream_outputs(spark, context, tmp_path, rows[1_000:], rows[:500], rows[500:1_000])
    rejected = rejected_frames(spark, context, rows)
    assert_outputs(context, SAMPLE, rows, {**frames, **rejected})
