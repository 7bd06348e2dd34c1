"""transform() alone: rows in, rows out, no stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import Connection
from ytstream.testing.frames import counted_rows, events_frame


def test_every_row_comes_out_once_and_converted(
    spark: SparkSession, connection: Connection
) -> None:
    job = connection.job
    rows = SAMPLE.make(500)
    result = job.transform(events_frame(spark, connection, rows))
    assert result.columns == [column.name for column in job.output_columns["output"]]
    assert counted_rows(connection, result.collect()) == SAMPLE.wanted(job, rows)
