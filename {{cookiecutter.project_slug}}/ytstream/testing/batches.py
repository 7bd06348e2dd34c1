"""transform() alone on a stream of files, for jobs whose result depends on earlier batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ..job import Connection
from ..query.user_state import verified_states
from .frames import events_frame


def streamed(
    spark: SparkSession,
    connection: Connection,
    folder: Path,
    *batches: Iterable[Mapping[str, Any]],
) -> DataFrame:
    """Return what transform() makes of ``batches``, each a micro-batch; files are in ``folder``."""
    frames = [events_frame(spark, connection, batch) for batch in batches]
    with _without_transactions(spark):
        for number, frame in enumerate(frames):
            frame.coalesce(1).write.parquet(f"file://{folder}/in/{number}")
        stream = (
            spark.readStream.schema(frames[0].schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(f"file://{folder}/in/*")
        )
        with verified_states():
            rows = connection.job.transform(stream)
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
