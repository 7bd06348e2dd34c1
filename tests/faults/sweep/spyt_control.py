"""The control: SPYT's example in a thread, started again as it is.

The window and the removal of duplicates are those of Spark, in the mode's own listing.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.faults.sweep.driver import Driver
from tests.support import spyt_example
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.recovery import spark_logs

_POLL_SECONDS = 0.1


class ListingDriver(Driver):
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
    """Start the query."""
    rows = context.job.transform(spyt_example.read(spark, context, parsing_type_v3=True))
    writer = spyt_example.written(rows, context, write_type_v3=True)
    milliseconds = round(context.settings.trigger_seconds * 1000)
    return writer.trigger(processingTime=f"{milliseconds} milliseconds").start()


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
