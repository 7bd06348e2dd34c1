"""The control: the job as SPYT's documentation writes it, in each of its three modes.

Structured Streaming, Idempotent receiver, Transactional streaming mode: a query of the format "yt"
with its checkpoint on Cypress, started again as it is. Several queues are a union of such streams,
and the window and the removal of duplicates are those of Spark, in the mode's own listing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tests.faults.sweep.life import Life
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.recovery import spark_logs

_POLL_SECONDS = 0.1
_POSITION = {
    "__spyt_streaming_src_tablet_index": "tablet_index",
    "__spyt_streaming_src_row_index": "row_index",
}
"""What SPYT calls the position of a row, and what the output's key calls it."""


class ListingLife(Life):
    """A driver that runs the listing until its query ends."""

    def run(self) -> None:
        """Start the query; raise what ends it."""
        query = _started(self.spark, self.context)
        try:
            while not self.is_asked_to_end(_POLL_SECONDS):
                if not query.isActive:
                    query.awaitTermination()
                    raise RuntimeError("the query has ended by itself")
            _finish_batch(query)
        finally:
            query.stop()


def _started(spark: SparkSession, context: JobContext) -> StreamingQuery:
    """Start the query as the listing does."""
    settings, is_keyed = context.settings, context.guarantee.name == "idempotent"
    rows = reduce(
        DataFrame.union,
        (
            _read(spark, context, queue).withColumn("queue_id", F.lit(queue))
            if is_keyed and len(settings.queues) > 1
            else _read(spark, context, queue)
            for queue in settings.queues
        ),
    )
    return (
        context.job.transform(rows)
        .writeStream.outputMode("append")
        .format("yt")
        .option("checkpointLocation", f"yt:/{settings.checkpoint}")
        .option("path", settings.output)
        .option("write_type_v3", True)
        .trigger(processingTime=f"{round(settings.trigger_seconds * 1000)} milliseconds")
        .start()
    )


def _read(spark: SparkSession, context: JobContext, queue: str) -> DataFrame:
    """Return the stream of one queue."""
    settings = context.settings
    rows: DataFrame = (
        spark.readStream.format("yt")
        .option("consumer_path", settings.consumer)
        .option("include_service_columns", context.guarantee.name == "idempotent")
        .option("max_rows_per_partition", settings.max_rows_per_partition)
        .option("parsing_type_v3", "true")
        .load(queue)
    )
    for name, renamed in _POSITION.items():
        rows = rows.withColumnRenamed(name, renamed)
    return rows


def _finish_batch(query: StreamingQuery) -> None:
    """Let the batch under way end, so that a recording ends with a whole one."""
    for _ in range(200):
        if not (query.isActive and query.status["isTriggerActive"]):
            return
        query.awaitTermination(1)


def drained(context: JobContext) -> Callable[[], bool]:
    """Return a function that is true once the newest planned batch is done and reads to the end."""
    client, settings = context.client, context.settings
    is_exact = context.guarantee.in_transaction

    def is_drained() -> bool:
        folder = settings.checkpoint
        offsets = spark_logs.numbers(client, f"{folder}/offsets")
        if not offsets or offsets[-1] not in spark_logs.numbers(client, f"{folder}/commits"):
            return False
        ends = spark_logs.planned(client, folder, offsets[-1]).ends
        queues = positions.read(client, settings).queues
        return all(
            end.get(partition, 0) >= upper
            and (not is_exact or queue.consumed.get(partition, 0) >= upper)
            for queue, end in zip(queues, ends, strict=True)
            for partition, upper in enumerate(queue.upper)
        )

    return is_drained
