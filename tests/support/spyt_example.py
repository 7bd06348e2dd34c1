"""SPYT's example: a job as its documentation writes it, in each of its three modes.

Structured Streaming, Idempotent receiver, Transactional streaming mode: a query of the format "yt"
with its checkpoint on Cypress. Several queues are a union of such streams. docs/findings has the
same in scripts that run without this repository.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ytstream.job import JobContext

_POSITION = {
    "__spyt_streaming_src_tablet_index": "tablet_index",
    "__spyt_streaming_src_row_index": "row_index",
}
"""What SPYT calls the position of a row, and what the output's key calls it."""


def read(spark: SparkSession, context: JobContext, **options: Any) -> DataFrame:
    """Return the stream of all queues, read with these options as well."""
    settings, is_keyed = context.settings, context.guarantee.name == "idempotent"
    streams = []
    for queue in settings.queues:
        rows = (
            spark.readStream.format("yt")
            .option("consumer_path", settings.consumer)
            .option("include_service_columns", is_keyed)
            .option("max_rows_per_partition", settings.max_rows_per_partition)
            .options(**options)
            .load(queue)
            .withColumnsRenamed(_POSITION)
        )
        is_named = is_keyed and len(settings.queues) > 1
        streams.append(rows.withColumn("queue_id", F.lit(queue)) if is_named else rows)
    return reduce(DataFrame.union, streams)


def written(rows: DataFrame, context: JobContext, **options: Any) -> DataStreamWriter:
    """Return the query that writes the rows into the first output, with these options as well."""
    settings = context.settings
    return (
        rows.writeStream.outputMode(context.job.kind.output_mode)
        .format("yt")
        .option("checkpointLocation", f"yt:/{settings.checkpoint}")
        .option("path", settings.output)
        .options(**options)
    )
