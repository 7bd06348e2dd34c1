"""Sample rows as the DataFrames that transform() receives, and its rows in YTsaurus' values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import yt.type_info as ti
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from ..columns import Column
from ..demo import fits
from ..demo.sample import REASON, Counted, compared, counted, is_rejected
from ..demo.tables import compare
from ..errors import JobError
from ..job import REJECTED, Connection
from ..query import reject
from ..query.outputs import Frames, Outputs, verify_columns
from ..query.source import INNER_POSITION
from .stream import assert_exact
from .values import conversion

#: The columns that a source adds to the queue's own.
_ADDED = {
    column.name: column
    for column in (
        Column("queue_id", ti.Utf8),
        Column("tablet_index", ti.Int64),
        Column("row_index", ti.Int64),
    )
}


def events_frame(
    spark: SparkSession, connection: Connection, rows: Iterable[Mapping[str, Any]]
) -> DataFrame:
    """Return ``rows`` with the columns of QUEUE, behind those that the source adds."""
    several = len(connection.settings.queues) > 1
    names = [*(["queue_id"] if several else []), *connection.guarantee.position]
    columns = [*(_ADDED[name] for name in names), *connection.job.queue_columns]
    if not (rows := [*rows]):
        raise JobError("events_frame() was given no rows", "give it some: SAMPLE.make(100)")
    # A test may send null where the queue would not take it.
    nullable = [replace(column, required=False) for column in connection.job.queue_columns]
    fits.verify("events_frame()", nullable, rows)
    place = {"queue_id": connection.settings.queues[0], "tablet_index": 0}
    placed = ({**row, **place, "row_index": number} for number, row in enumerate(rows))
    return _frame(spark, columns, placed)


def reference_frame(
    spark: SparkSession, connection: Connection, rows: Iterable[Mapping[str, Any]]
) -> DataFrame:
    """Return ``rows`` with the columns of REFERENCE."""
    return _frame(spark, connection.job.reference_columns, rows)


def output_frames(
    spark: SparkSession,
    connection: Connection,
    rows: Iterable[Mapping[str, Any]],
    reference: DataFrame | None = None,
) -> Frames:
    """Return the rows of each output, as a micro-batch of ``rows`` would write them."""
    job, outputs = connection.job, Outputs(connection, reference)
    events = tagged(events_frame(spark, connection, rows), connection)
    if not job.reject:
        return outputs.split(outputs.transformed(events))
    rejected = reject.frame(events, job, len(connection.settings.queues), datetime.now(UTC))
    made = outputs.split(outputs.transformed(reject.passed(events)))
    return {**made, REJECTED: rejected}


def tagged(events: DataFrame, connection: Connection) -> DataFrame:
    """Return ``events`` with the reason to reject each row, if the job rejects any."""
    if not connection.job.reject:
        return events
    place = {inner: F.lit(0).cast("long") for inner in INNER_POSITION.values()}
    return reject.tagged(events.withColumns(place), connection.job)


def assert_rows(
    connection: Connection, result: DataFrame, wanted: Counted, output: str = "output"
) -> None:
    """Fail unless ``result`` has the output's columns and, as often each, the rows ``wanted``.

    Shows the first rows that differ, face to face.
    """
    if not wanted:
        raise JobError("the test compares no rows", "give it rows for which expected() has some")
    job = connection.job
    maker = "transform()" if job.split is None else "outputs()"
    verify_columns(output, result, job.output_columns[output], maker)
    if is_rejected(job, output):
        result = reject.restored(result, _schema(job.queue_columns))
        result = result.withColumnRenamed(reject.REASON, REASON)
    outcome = compare(wanted, counted_rows(connection, result.collect(), output))
    assert_exact(job, {output: outcome})


def counted_rows(connection: Connection, rows: Iterable[Row], output: str = "output") -> Counted:
    """Return how often each row of the output is there, without the guarantee's position."""
    columns = compared(connection.job, output)
    back = {column.name: conversion(column.type).from_spark for column in columns}
    return counted(({name: to(row[name]) for name, to in back.items()} for row in rows), columns)


def _frame(
    spark: SparkSession, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]
) -> DataFrame:
    ways = {column.name: conversion(column.type) for column in columns}
    values = [tuple(way.to_spark(row.get(name)) for name, way in ways.items()) for row in rows]
    return spark.createDataFrame(values, _schema(columns))


def _schema(columns: Sequence[Column]) -> StructType:
    return StructType([StructField(c.name, conversion(c.type).type) for c in columns])
