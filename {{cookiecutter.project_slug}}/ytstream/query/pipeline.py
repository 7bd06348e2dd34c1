"""Queues -> transform() -> output table, as one streaming query."""

from dataclasses import replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from .. import confs
from ..blame import place
from ..cluster import connect
from ..errors import JobError
from ..job import Connection
from ..recovery.folder import path_of
from ..schema import unwritable
from .audit import uncounted
from .batch import Batch, verify_sink
from .source import events


def rows_of(
    spark: SparkSession, connection: Connection, reference: DataFrame | None = None
) -> DataFrame:
    """Return the rows to write; nothing runs yet. Raises JobError for rows that must not be."""
    verify_sink(spark, connection)
    arguments = [events(spark, connection), *([reference] if reference is not None else [])]
    try:
        rows = connection.job.transform(*arguments)
        verify_columns(rows, connection)
    except (JobError, PySparkException, Py4JError):
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}{place(error)}"
        raise JobError(f"transform() failed: {problem}", "correct transform.py") from error
    return connection.guarantee.admit(rows, connection.settings)


def start(rows: DataFrame, batch: Batch) -> StreamingQuery:
    """Start the query that hands its micro-batches to ``batch``.

    The trigger is always a processing time: SPYT's source does not support AvailableNow.
    """
    connection = batch.connection
    batch.uncounted = uncounted(rows, connection.settings.queues)
    # Batches run in a thread of Spark's, and a client keeps its transaction for all threads.
    batch.connection = replace(connection, client=connect(connection.settings))
    folder = path_of(connection.settings, batch.epoch.number)
    values = {**connection.values, "checkpoint_uri": f"yt:/{folder}"}
    milliseconds = round(connection.settings.trigger_seconds * 1000)
    query = (
        rows.writeStream.foreachBatch(batch)
        .outputMode("append")
        .options(**confs.filled(iter(confs.WRITER), values))
        .trigger(processingTime=f"{milliseconds} milliseconds")
        .start()
    )
    batch.query.set_result(query)
    return query


def verify_columns(rows: DataFrame, connection: Connection) -> None:
    """Raise JobError unless ``rows`` has exactly the output's columns, in types it can hold.

    A missing column would be written as null in every row; an extra one ends the first batch.
    """
    if not isinstance(rows, DataFrame):
        raise JobError(f"transform() returns {rows!r}, wanted a DataFrame", "return the rows")
    table = {column.name: column for column in connection.job.output_columns["output"]}
    found = {field.name: field.dataType for field in rows.schema.fields}
    missing, extra = table.keys() - found.keys(), found.keys() - table.keys()
    problems = [f"column {name}: not returned by transform()" for name in missing]
    problems += [f"column {name}: returned by transform(), not in OUTPUTS" for name in extra]
    shared = table.keys() & found.keys()
    problems += filter(None, (unwritable(table[name], found[name]) for name in shared))
    if len(found) != len(rows.columns):
        problems.append(f"duplicate column name: {', '.join(rows.columns)}")
    if problems:
        raise JobError(
            "transform() and OUTPUTS in tables.py disagree:\n  " + "\n  ".join(sorted(problems)),
            "correct transform.py or tables.py; nothing was started",
        )
