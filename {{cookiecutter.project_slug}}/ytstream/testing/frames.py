"""Sample rows as the DataFrames that transform() receives, and its rows in YTsaurus' values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yt.type_info as ti
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructField, StructType

from ..columns import Column
from ..demo import fits
from ..demo.sample import Counted, compared, counted
from ..demo.tables import compare
from ..errors import JobError
from ..job import Connection
from ..query.pipeline import verify_columns
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


def counted_rows(connection: Connection, rows: Iterable[Row]) -> Counted:
    """Return how often each output row is there, without the guarantee's position columns."""
    columns = compared(connection.job)
    back = {column.name: conversion(column.type).from_spark for column in columns}
    return counted(({name: to(row[name]) for name, to in back.items()} for row in rows), columns)


def assert_rows(connection: Connection, result: DataFrame, wanted: Counted) -> None:
    """Fail unless ``result`` has the columns of OUTPUTS and, as often each, the rows ``wanted``.

    Shows the first rows that differ, face to face.
    """
    if not wanted:
        raise JobError("the test compares no rows", "give it rows for which expected() has some")
    verify_columns(result, connection)
    assert_exact(connection.job, compare(wanted, counted_rows(connection, result.collect())))


def _frame(
    spark: SparkSession, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]
) -> DataFrame:
    ways = {column.name: conversion(column.type) for column in columns}
    schema = StructType([StructField(name, way.type) for name, way in ways.items()])
    values = [tuple(way.to_spark(row.get(name)) for name, way in ways.items()) for row in rows]
    return spark.createDataFrame(values, schema)
