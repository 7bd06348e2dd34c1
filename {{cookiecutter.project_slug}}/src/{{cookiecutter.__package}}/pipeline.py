"""Queues -> transform -> output table, as one streaming query."""

from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from . import guard
from .errors import JobError
from .guarantee import admit
from .inputs import inputs
from .settings import Settings
from .transform import transform


def result(spark: SparkSession, client: Any, settings: Settings) -> DataFrame:
    """The rows to write; nothing runs yet. Raises JobError for rows that may not be written."""
    arguments = inputs(spark, client, settings)
    try:
        rows = transform(*arguments)
        guard.verify(rows)
    except (JobError, PySparkException, Py4JError):
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise JobError(f"transform() failed: {problem}", "correct transform.py") from error
    return admit(rows, settings)


def start(rows: DataFrame, settings: Settings) -> StreamingQuery:
    """Start the query. Only ``append`` exists in SPYT's sink (YtStreamingProviderImpl.createSink).

    The trigger is always a processing time: SPYT's source does not support AvailableNow.
    """
    return (
        rows.writeStream.format("yt")
        .outputMode("append")
        .option("checkpointLocation", settings.checkpoint_uri)
        # The sink does not read spark.yt.write.typeV3.enabled (YtDynamicTableWriter).
        .option("write_type_v3", "true")
        .trigger(processingTime=f"{round(settings.trigger_seconds * 1000)} milliseconds")
        .start(settings.output)
    )
