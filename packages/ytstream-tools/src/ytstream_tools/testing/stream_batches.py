"""REJECT and transform() on a stream of files, for jobs whose result depends on earlier batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import batch_name
from ytstream.outputs import column_values, string_columns
from ytstream.outputs.output_frames import Frames, OutputFrames
from ytstream.rejected.tagging import passed
from ytstream.schema.columns import key_of

from .added_rows import added
from .merged_table import MergedTable
from .type_conversion import with_zone
from .unit_frames import GivenReferences, ReferenceRows, events_frame, tagged


def stream_outputs(
    spark: SparkSession,
    context: JobContext,
    folder: Path,
    *batches: Iterable[Mapping[str, Any]],
    references: ReferenceRows | None = None,
) -> Frames:
    """Return the rows of each output after ``batches``, each of them one micro-batch.

    Rejected rows do not reach transform(). An output with a key has the newest row of each key, its
    totals, or what MERGE makes of the batches.

    Args:
        spark: the session of the fixture
        context: the job, of the fixture
        folder: for temporary files, such as pytest's ``tmp_path``
        batches: the rows of each micro-batch, by column, in the values of ytsaurus-client
        references: for lookup(), the rows of each reference by its name

    Returns:
        the frame of each output by its name
    """
    outputs = OutputFrames(context, references=GivenReferences(spark, context, references or {}))
    schemas: dict[str, StructType] = {}
    rows: dict[str, dict[object, tuple[Any, ...]]] = {}
    failures: list[Exception] = []
    job = context.job
    merged = {
        name: MergedTable(spark, name, job.output_columns[name], rule)
        for name, rule in job.merge.items()
    }

    def write(batch: DataFrame, number: int) -> None:
        try:
            with outputs.finished(batch) as finished:
                for name, frame in outputs.of(finished).items():
                    if name in merged:
                        merged[name].merge(frame)
                        continue
                    columns = key_of(context.job.output_columns[name])
                    key = [column for column in columns if column in frame.columns]
                    if name in context.job.totals:  # the rows of all batches are added up
                        key = []
                    schemas[name] = frame.schema
                    for at, row in enumerate(string_columns.crossing(frame).collect()):
                        place = [str(row[column]) for column in key] if key else [number, at]
                        rows.setdefault(name, {})[tuple(place)] = with_zone(frame.schema, row)
        except Exception as error:
            failures.append(
                column_values.job_error(error, f"batch {batch_name(1, number)}") or error
            )
            raise RuntimeError("the batch failed") from None  # Spark adds a trace of its own

    try:
        _run(outputs, spark, folder, batches, lambda writer: writer.foreachBatch(write))
    except StreamingQueryException as error:
        raise failures[0] if failures else error from None
    found = {
        name: string_columns.crossed(spark.createDataFrame([*rows.get(name, {}).values()], schema))
        for name, schema in schemas.items()
    }
    columns = context.job.output_columns
    made = {name: added(frame, columns[name]) for name, frame in found.items()}
    return made | {name: table.frame() for name, table in merged.items() if table.schema}


def streamed(
    spark: SparkSession,
    context: JobContext,
    folder: Path,
    *batches: Iterable[Mapping[str, Any]],
    references: ReferenceRows | None = None,
) -> DataFrame:
    """Return what transform() makes of ``batches``, each of them one micro-batch.

    Rejected rows do not reach transform().

    Args:
        spark: the session of the fixture
        context: the job, of the fixture
        folder: for temporary files, such as pytest's ``tmp_path``
        batches: the rows of each micro-batch, by column, in the values of ytsaurus-client
        references: for lookup(), the rows of each reference by its name
    """
    name = "streamed"
    outputs = OutputFrames(context, references=GivenReferences(spark, context, references or {}))
    _run(outputs, spark, folder, batches, lambda to: to.format("memory").queryName(name))
    return spark.table(name)


def _run(
    outputs: OutputFrames,
    spark: SparkSession,
    folder: Path,
    batches: Sequence[Iterable[Mapping[str, Any]]],
    into: Callable[[DataStreamWriter], DataStreamWriter],
) -> None:
    """Stream the batches out of files, through transform(), until they are done."""
    context = outputs.context
    frames = [events_frame(spark, context, batch) for batch in batches]
    with _without_transactions(spark):
        for number, frame in enumerate(frames):
            frame.coalesce(1).write.parquet(f"file://{folder}/in/{number}")
        stream = (
            spark.readStream.schema(frames[0].schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(f"file://{folder}/in/*")
        )
        events = tagged(stream, context)
        rows = outputs.transformed(passed(events) if context.job.judges else events)
        query = (
            into(rows.writeStream)
            .outputMode(context.job.kind.output_mode)
            .option("checkpointLocation", f"file://{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


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
