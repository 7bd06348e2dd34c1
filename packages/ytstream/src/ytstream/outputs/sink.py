"""The sink: each output of a micro-batch goes through it, in the batch's transaction.

It is the runtime's own or SPYT's, see connector/choose_connector.py.

``verify_sink`` says when another SPYT has another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..cluster.client import first_line
from ..connector import choose_connector
from ..connector.java import Java, jvm_of
from ..connector.spark_plan import execution_of, observations
from ..connector.spyt import add_batch, sink, verify_spyt
from ..connector.tablet_transactions import Tablets
from ..connector.transform_plan import observed_name
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger.ledger_rows import KeyChanges
from ..ledger.positions import read_head
from ..schema.changes import DELETED, deleted_columns, deleted_path
from ..schema.sums import Known, sums_of
from ..settings import spark_conf
from ..version import version_of
from . import merged_rows, sum_bounds
from .output_frames import Frames
from .stored_rows import stored_rows

Sums = Mapping[str, Known]
"""Path of an output with totals -> the bounds of its sums."""


def verify_sink(spark: SparkSession, context: JobContext) -> None:
    """Raise JobError unless SPYT's sink and its transaction context are as this module calls them.

    Neither is documented, so another SPYT may not have them.
    """
    tablets = Tablets(jvm_of(spark), context.settings)
    try:
        _sink(spark, context, tablets.java, "output")
        verify_spyt(tablets.java)
        with tablets.transaction() as transaction:
            read_head(context.settings.ledger, transaction.select)
    except (Py4JError, TypeError) as error:
        raise JobError(
            f"SPYT {version_of('spyt')} has another sink than this runtime calls: "
            f"{first_line(error)}",
            "use the SPYT that pyproject.toml pins, or a version of this template made for yours",
            code=ErrorCode.SPYT_VERSION,
        ) from error


def _sink(spark: SparkSession, context: JobContext, java: Java, output: str) -> Any:
    options = spark_conf.filled(iter(spark_conf.SINK), context.values)
    return sink(spark, java, {"path": context.settings.outputs[output], **options})


def _add_batch(
    rows: DataFrame, output: str, context: JobContext, java: Java, number: int, sums: Sums, *,
    is_first: bool = False, rejected: Any = None,
) -> Sums:  # fmt: skip
    """Write rows into an output, in the transaction of this thread if there is one.

    Return the bounds of its sums after them. ``rejected`` sends the rows that tasks reject.

    A sink of SPYT's for each call: one that is kept skips batch numbers up to its last without an
    error, and numbers begin at 0 again with a new checkpoint (YtStreamingSink.addBatch).
    """
    spark, settings = rows.sparkSession, context.settings
    if choose_connector.in_use(spark, settings).is_own:
        columns = context.job.output_columns[output]
        tablets = context.output_tablets.get(output, 0)
        path, ends = settings.outputs[output], sums_of(columns)
        exact = bool(ends) and (is_first or sum_bounds.is_exact(sums[path], ends))
        most = context.write_rows
        found = choose_connector.write(
            rows, path, columns, tablets, most, java, is_exact=exact, rejected=rejected
        )
        if not ends:
            return {}
        return {
            path: sum_bounds.after(
                sums[path], sum_bounds.added(found.added()), ends,
                lambda: sum_bounds.scanned(context, path, ends),
                lambda: sum_bounds.totals(found.totals()),
            )
        }  # fmt: skip
    if output in (*context.job.totals, *context.job.merge):  # never without a word
        raise JobError(
            f"SPYT's writer would replace the rows of {output!r}",
            "start the job again",
            code=ErrorCode.SPYT_VERSION,
        )
    add_batch(_sink(spark, context, java, output), number, rows)
    return {}


@dataclass(frozen=True)
class WrittenRows:
    """What a batch has written."""

    rows: Mapping[str, int] = field(default_factory=dict)
    """Output -> rows."""
    changes: Mapping[str, KeyChanges] = field(default_factory=dict)
    """Output with MERGE -> what happened to its keys."""
    sums: Sums = field(default_factory=dict)
    """Path of an output with totals -> the bounds of its sums."""


def write_outputs(
    frames: Frames, context: JobContext, java: Java, number: int, sums: Sums, *, is_first: bool
) -> WrittenRows:
    """Write the rows of each dynamic output, one output after the other.

    They go into the batch's transaction if it has one. ``sums`` are the bounds before it. In
    the first batch of a query tasks name each key that they add to: see sum_bounds.after().
    """
    job, rows, changes = context.job, dict[str, int](), dict[str, KeyChanges]()
    known = dict(sums)
    for name in job.outputs:
        if name not in frames or name in job.static:
            continue
        if name in job.merge:
            changes[name] = _merge(frames[name], name, context, java)
            rows[name] = changes[name].changed
        else:
            fenced = context.guarantee.fenced(observed_writes(frames[name], name))
            more = _add_batch(fenced, name, context, java, number, sums, is_first=is_first)
            known.update(more)
            rows[name] = _count(execution_of(fenced), name)
    return WrittenRows(rows, changes, known)


def _merge(rows: DataFrame, name: str, context: JobContext, java: Java) -> KeyChanges:
    """Let the rows of a batch change those of an output as MERGE says."""
    job, settings = context.job, context.settings
    columns, rule, path = job.output_columns[name], job.merge[name], settings.outputs[name]
    stored = stored_rows(name, path, columns)
    with merged_rows.changes(rows, name, columns, rule, stored) as changes:
        counted = changes.rows.observe(observed_name(name), *merged_rows.counts())
        written = context.guarantee.fenced(changes.written(counted))
        choose_connector.write(written, path, columns, 0, context.write_rows, java, DELETED)
        if name in job.deletions:
            kept = deleted_columns(columns, job.deletions[name])
            names = context.guarantee.fenced(changes.remembered(job.deletions[name].sequence_by))
            choose_connector.write(names, deleted_path(path), kept, 0, context.write_rows, java)
        mark = observed_name(name)
        found = observations(execution_of(written), [mark])
        return KeyChanges(*map(int, found[mark])) if mark in found else KeyChanges()


def write(rows: DataFrame, name: str, context: JobContext, java: Java, number: int) -> Any:
    """Write rows of an output without totals; return their execution, which has counted them."""
    fenced = context.guarantee.fenced(observed_writes(rows, name))
    _add_batch(fenced, name, context, java, number, {})
    return execution_of(fenced)


def write_streamed(
    rows: DataFrame, context: JobContext, java: Java, number: int, sums: Sums, *, is_first: bool,
    rejected: Any = None,
) -> WrittenRows:  # fmt: skip
    """Write the rows of the one output, which the query itself fences and counts.

    ``rejected`` sends those that the same tasks reject: see collected.py.
    """
    found = _add_batch(
        rows, "output", context, java, number, sums, is_first=is_first, rejected=rejected
    )
    return WrittenRows(sums={**sums, **found})


def observed_writes(rows: DataFrame, output: str) -> DataFrame:
    """Return the rows, which Spark counts; a fence stays above them: below it would copy them."""
    return rows.observe(observed_name(output), F.expr("count(1) as rows"))


def _count(execution: Any, output: str) -> int:
    name = observed_name(output)
    found = observations(execution, [name])
    return int(found[name][0]) if name in found else 0
