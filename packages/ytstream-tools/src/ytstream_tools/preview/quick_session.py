"""Settings of a session that computes a few rows again and again: it answers soon after a save."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ytstream.job import Job, JobContext
from ytstream.settings import spark_conf

from ..testing.computed_outputs import unconnected

_AT_START = {
    # SPYT sets snappy, whose library looks for its version in all jars before each broadcast.
    "spark.io.compression.codec": "lz4",
    # Each function of PySpark would tell the JVM from where it is called, in three calls more
    # (pyspark/errors/utils.py). The runtime finds the line of an error without that.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.parquet.compression.codec": "uncompressed",
}
"""For a few rows, to interpret a plan takes less time than to compile it, and one task than many.
"""


def context_of(job: Job) -> JobContext:
    """Return the job with settings that are soon ready: its state lives for one preview."""
    context = unconnected(job)
    spark = {**context.settings.spark, **_AT_START}
    return replace(context, settings=replace(context.settings, state_store="memory", spark=spark))


@contextmanager
def static_deduplication() -> Iterator[None]:
    """Let dropDuplicatesWithinWatermark() take rows that are not a stream, which Spark does not.

    In one micro-batch it keeps one row of each key, as dropDuplicates() does.
    """
    # Of Spark 4, which has another class for Spark Connect. A frame of the session's would tell,
    # and costs a person who waits half a second.
    frames: Any = DataFrame
    with suppress(ImportError):
        frames = import_module("pyspark.sql.classic.dataframe").DataFrame
    of_streams = frames.dropDuplicatesWithinWatermark

    def drop(rows: DataFrame, subset: list[str] | None = None) -> Any:
        return of_streams(rows, subset) if rows.isStreaming else rows.dropDuplicates(subset)

    frames.dropDuplicatesWithinWatermark = drop
    try:
        yield
    finally:
        frames.dropDuplicatesWithinWatermark = of_streams


def configure(spark: SparkSession) -> None:
    """Make the session quick; the state's files are on this machine's disk."""
    on_disk = [conf for conf in spark_conf.STATELESS if conf.since <= spark.version]
    for key, value in {**spark_conf.filled(iter(on_disk), {}), **_FEW_ROWS}.items():
        spark.conf.set(key, value)
