"""Sample rows as the DataFrames that transform() receives, and its rows in YTsaurus' values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import yt.type_info as ti
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from ytstream.declaration.broadcast_lookup import joined
from ytstream.declaration.lookups import Lookup
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import REJECTED, JobContext
from ytstream.outputs import any_columns, string_columns
from ytstream.outputs.output_frames import Frames, OutputFrames, verify_columns
from ytstream.rejected import tagging
from ytstream.schema.columns import Column, key_of
from ytstream.spark.source import INNER_POSITION

from ..demo import row_queue, sample_types
from ..demo.demo_tables import compare
from ..demo.job_sample import (
    REASON,
    Counted,
    Sample,
    compared,
    counted,
    is_rejected,
    untyped,
)
from .added_rows import added
from .job_stream import assert_exact
from .merged_table import MergedTable
from .type_conversion import conversion

ReferenceRows = Mapping[str, Iterable[Mapping[str, Any]]]
"""Name of a reference -> its rows."""
_ADDED = {
    column.name: column
    for column in (
        Column("queue_id", ti.Utf8),
        Column("tablet_index", ti.Int64),
        Column("row_index", ti.Int64),
    )
}
"""The columns that a source adds to the queue's own."""


def events_frame(
    spark: SparkSession, context: JobContext, rows: Iterable[Mapping[str, Any]]
) -> DataFrame:
    """Return ``rows`` as transform() gets them: the columns of QUEUE after those of the source.

    Args:
        spark: the session of the fixture
        context: the job, of the fixture
        rows: rows of a queue, by column, in the values of ytsaurus-client

    Raises:
        JobError: ``rows`` is empty, or a value does not fit its column
    """
    several = len(context.settings.queues) > 1
    names = [*(["queue_id"] if several else []), *context.guarantee.position]
    columns = [*(_ADDED[name] for name in names), *context.job.queue_columns]
    if not (rows := [*rows]):
        raise JobError(
            "events_frame() was given no rows",
            "give it some: SAMPLE.make(100)",
            code=ErrorCode.SAMPLE,
        )
    # A test may send null where the queue would not take it.
    nullable = [replace(column, required=False) for column in context.job.queue_columns]
    queues = context.settings.queues
    sample_types.verify("events_frame()", nullable, row_queue.bare(rows, queues))
    place = {"queue_id": queues[0], "tablet_index": 0}
    placed = ({**place, **row, "row_index": number} for number, row in enumerate(rows))
    return _frame(spark, columns, placed)


def reference_frame(
    spark: SparkSession, context: JobContext, rows: Iterable[Mapping[str, Any]]
) -> DataFrame:
    """Return ``rows`` with the columns of REFERENCE.

    Args:
        spark: the session of the fixture
        context: the job, of the fixture
        rows: rows of the reference table, by column
    """
    return _frame(spark, context.job.reference_columns, rows)


@dataclass(frozen=True)
class GivenReferences:
    """What lookup() reads in a test: rows that the test gives, without a cluster."""

    spark: SparkSession
    context: JobContext
    rows: ReferenceRows

    @property
    def columns(self) -> Mapping[str, tuple[Column, ...]]:
        """The columns of each reference, by its name in REFERENCES."""
        return self.context.job.lookup_columns

    def joined(self, rows: DataFrame, lookup: Lookup) -> DataFrame:
        """Return the rows with the columns of the reference. Raises JobError without its rows."""
        name = lookup.reference
        if name not in self.rows:
            raise JobError(
                f"the test gives no rows of the reference {name}",
                f"give output_frames() references={{{name!r}: [...]}}, or SAMPLE.references",
                code=ErrorCode.SAMPLE,
            )
        columns, given = self.columns[name], [*self.rows[name]]
        sample_types.verify(f"references[{name!r}]", columns, given)
        verify_keys(name, columns, given)
        return joined(rows, _frame(self.spark, columns, given), lookup)


def verify_keys(name: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise JobError for two rows of one key, which no table has."""
    key = key_of(columns)
    keys = Counter(tuple(untyped(row.get(column)) for column in key) for row in rows)
    if repeated := [values for values, count in keys.items() if count > 1]:
        raise JobError(
            f"references[{name!r}] has two rows of the key {', '.join(map(str, repeated[0]))}",
            "give each key once, as the table has it",
            code=ErrorCode.SAMPLE,
        )


def output_frames(
    spark: SparkSession,
    context: JobContext,
    rows: Iterable[Mapping[str, Any]],
    reference: DataFrame | None = None,
    references: ReferenceRows | None = None,
) -> Frames:
    """Return the rows of each output, as one micro-batch of ``rows`` would write them.

    Args:
        spark: the session of the fixture
        context: the job, of the fixture
        rows: rows of a queue, by column, in the values of ytsaurus-client
        reference: for a join, the frame of reference_frame()
        references: for lookup(), the rows of each reference by its name

    Returns:
        the frame of each output by its name, with "rejected" if the job has REJECT

    Raises:
        JobError: ``rows`` is empty, a value does not fit its column, or outputs() is wrong
    """
    given = GivenReferences(spark, context, references or {})
    outputs, rows = OutputFrames(context, reference, given), [*rows]
    made = _split(tagged(events_frame(spark, context, rows), context), outputs)
    return {**merged(spark, context, made), **rejected_frames(spark, context, rows)}


def merged(
    spark: SparkSession,
    context: JobContext,
    frames: Frames,
    tables: dict[str, MergedTable] | None = None,
) -> Frames:
    """Return the rows of the outputs, of those with MERGE what the table has after them.

    ``tables`` keeps their tables for the next batch. Without it, they are empty before.
    """
    made, job = dict(frames), context.job
    tables = {} if tables is None else tables
    maker = "transform()" if job.split is None else "outputs()"
    for name in (name for name in frames if name in job.merge):
        columns, rule = job.output_columns[name], job.merge[name]
        verify_columns(name, frames[name], columns, maker, rule)
        table = tables.setdefault(name, MergedTable(spark, name, columns, rule))
        table.merge(frames[name])
        made[name] = table.frame()
    return made


def sample_outputs(
    spark: SparkSession,
    context: JobContext,
    rows: Iterable[Mapping[str, Any]],
    reference: DataFrame | None = None,
    references: ReferenceRows | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each output as output_rows() does, with those of "rejected"."""
    given = GivenReferences(spark, context, references or {})
    events = tagged(events_frame(spark, context, rows), context)
    made = merged(spark, context, _split(events, OutputFrames(context, reference, given)))
    found = {name: output_rows(context, frame, name) for name, frame in made.items()}
    return {**found, **_rejected(context, events)}


def _split(events: DataFrame, outputs: OutputFrames) -> Frames:
    """Return what transform() and outputs() make of ``tagged`` events."""
    passed = tagging.passed(events) if outputs.context.job.judges else events
    return outputs.split(outputs.transformed(passed))


def merged_outputs(
    spark: SparkSession,
    context: JobContext,
    batches: Iterable[Iterable[Mapping[str, Any]]],
    reference: DataFrame | None = None,
    references: ReferenceRows | None = None,
) -> list[dict[str, list[dict[str, Any]]]]:
    """Return what the outputs with MERGE have after each of several micro-batches."""
    outputs = OutputFrames(context, reference, GivenReferences(spark, context, references or {}))
    tables, found = dict[str, MergedTable](), []
    for rows in batches:
        events = tagged(events_frame(spark, context, rows), context)
        merged(spark, context, _split(events, outputs), tables)
        after = {name: table.frame() for name, table in tables.items()}
        found.append({name: output_rows(context, frame, name) for name, frame in after.items()})
    return found


def rejected_rows(
    spark: SparkSession, context: JobContext, rows: Iterable[Mapping[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that REJECT rejects, under "rejected". Without REJECT, return {}."""
    return _rejected(context, tagged(events_frame(spark, context, rows), context))


def _rejected(context: JobContext, events: DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return the rejected rows of ``tagged`` events, without the detour by JSON of the table."""
    if not context.job.rejects:
        return {}
    found = events.filter(F.col(tagging.REASON).isNotNull())
    named = found.withColumnRenamed(tagging.REASON, REASON)
    return {REJECTED: _rows(context, named, REJECTED)}


def rejected_frames(
    spark: SparkSession, context: JobContext, rows: Iterable[Mapping[str, Any]]
) -> Frames:
    """Return the rows that REJECT rejects, under "rejected". Without REJECT, return {}.

    Args:
        spark: the session of the fixture
        context: the job, of the fixture
        rows: rows of a queue, by column, in the values of ytsaurus-client
    """
    job = context.job
    if not job.rejects:
        return {}
    events = tagged(events_frame(spark, context, rows), context)
    columns = tagging.columns(events.schema, job, len(context.settings.queues))
    return {REJECTED: tagging.frame(events, columns, datetime.now(UTC))}


def tagged(events: DataFrame, context: JobContext) -> DataFrame:
    """Return ``events`` with the reason to reject each row, if the job rejects any."""
    if not context.job.judges:
        return events
    place = {inner: F.lit(0).cast("long") for inner in INNER_POSITION.values()}
    return tagging.tagged(events.withColumns(place), context)


def assert_outputs(
    context: JobContext,
    sample: Sample,
    rows: Sequence[Mapping[str, Any]],
    frames: Frames,
) -> None:
    """Fail unless each of ``frames`` has the rows that sample/expected.py makes of ``rows``.

    Shows the first rows of each output that differ.

    Args:
        context: the job, of the fixture
        sample: the rows of the project, of the fixture
        rows: rows of a queue, by column, in the values of ytsaurus-client
        frames: what output_frames() or stream_outputs() made of ``rows``

    Raises:
        JobError: expected() yields no row of "output", so nothing would be compared
    """
    job = context.job
    wanted = {name: sample.wanted(job, rows, name) for name in frames}
    if not wanted.get("output"):
        raise JobError(
            "the test compares no rows of 'output': expected() in sample/expected.py yields none",
            "let rows() in sample/rows.py make some rows that come out",
            code=ErrorCode.SAMPLE,
        )
    found = {
        name: sample.leveled(
            job, name, counted(output_rows(context, frame, name), compared(job, name))
        )
        for name, frame in frames.items()
    }
    assert_exact(job, {name: compare(wanted[name], rows) for name, rows in found.items()})


def assert_rows(
    context: JobContext, result: DataFrame, wanted: Counted, output: str = "output"
) -> None:
    """Fail unless ``result`` has the output's columns and exactly the rows ``wanted``.

    Shows the first rows that differ.

    Args:
        context: the job, of the fixture
        result: the rows of the output
        wanted: how many of each row must be there
        output: the name of the output

    Raises:
        JobError: ``wanted`` is empty, so nothing would be compared
    """
    if not wanted:
        raise JobError(
            "the test compares no rows",
            "give it rows that expected() makes some of",
            code=ErrorCode.SAMPLE,
        )
    found = counted(output_rows(context, result, output), compared(context.job, output))
    assert_exact(context.job, {output: compare(wanted, found)})


def output_rows(
    context: JobContext, result: DataFrame, output: str = "output"
) -> list[dict[str, Any]]:
    """Return the rows of an output in YTsaurus' values, without the guarantee's position.

    Contributions to totals are added up. Of a rejected row: the reason and the queue's row. Raises
    JobError for other columns than those of OUTPUTS.
    """
    job = context.job
    maker = "transform()" if job.split is None else "outputs()"
    verify_columns(output, result, job.output_columns[output], maker)
    any_columns.verify(result, job, maker)
    if is_rejected(job, output):
        result = tagging.restored(result, _schema(job.queue_columns))
        result = result.withColumnRenamed(tagging.REASON, REASON)
    try:
        return _rows(context, result, output)
    except ValueError as error:  # PySpark makes a datetime of each date and time
        raise JobError(
            f"{output!r} has a date or time that Python cannot show: {error}",
            "keep such rows out with REJECT, or make the value null in transform.py: a table holds "
            "dates and times between 1970 and 2105",
            code=ErrorCode.SAMPLE,
        ) from error


def counted_rows(context: JobContext, result: DataFrame, output: str = "output") -> Counted:
    """Return how often each row of the output is there, without the guarantee's position."""
    return counted(_rows(context, result, output), compared(context.job, output))


def _rows(context: JobContext, result: DataFrame, output: str) -> list[dict[str, Any]]:
    back = {
        column.name: conversion(column.type).from_spark for column in compared(context.job, output)
    }
    result = added(result, context.job.output_columns[output])
    rows = string_columns.crossing(result).collect()
    return [{name: to(row[name]) for name, to in back.items()} for row in rows]


def _frame(
    spark: SparkSession, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]
) -> DataFrame:
    ways = {column.name: conversion(column.type) for column in columns}
    values = [tuple(way.to_spark(row.get(name)) for name, way in ways.items()) for row in rows]
    # In one part: Spark then groups without a shuffle (CoalesceExec, SinglePartition).
    made = spark.createDataFrame(values, _schema(columns)).coalesce(1)
    return string_columns.crossed(made)


def _schema(columns: Sequence[Column]) -> StructType:
    return StructType([StructField(c.name, conversion(c.type).type) for c in columns])
