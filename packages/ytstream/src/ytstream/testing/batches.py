"""REJECT and transform() on a stream of files, for jobs whose result depends on earlier batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ..job import Connection
from ..query.reject import passed
from .frames import events_frame, tagged


def streamed(
    spark: SparkSession,
    connection: Connection,
    folder: Path,
    *batches: Iterable[Mapping[str, Any]],
) -> DataFrame:
    """Return what transform() makes of ``batches``, each a micro-batch; files are in ``folder``.

    Rows that REJECT keeps out do not reach it.
    """
    frames = [events_frame(spark, connection, batch) for batch in batches]
    with _without_transactions(spark):
        for number, frame in enumerate(frames):
            frame.coalesce(1).write.parquet(f"file://{folder}/in/{number}")
        stream = (
            spark.readStream.schema(frames[0].schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(f"file://{folder}/in/*")
        )
        events = tagged(stream, connection)
        rows = connection.job.transform(passed(events) if connection.job.reject else events)
        query = (
            rows.writeStream.format("memory")
            .queryName("streamed")
            .outputMode(connection.job.kind.output_mode)
            .option("checkpointLocation", f"file://{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return spark.table("streamed")


@contextmanager
def _without_transactions(spark: SparkSession) -> Iterator[None]:
    """Switch SPYT's transactions off: no row comes from a queue here."""
    key = "spark.yt.streaming.transactional"
    before = spark.conf.get(key, "false")
    spark.conf.set(key, "false")
    try:
        yield
    finally:
        spark.conf.set(key, str(before))
