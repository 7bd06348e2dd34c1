"""One Spark session, and transform() in it as often as a file is saved."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from ytstream.declaration import user_errors
from ytstream.declaration.validation import verify
from ytstream.errors import JobError
from ytstream.job import Job, JobContext
from ytstream.spark.spark_errors import cause
from ytstream.text_table import counted

from ..demo import row_queue
from ..demo.job_sample import Sample
from ..testing.computed_outputs import Outputs, outputs_of, unconnected, unstreamed_outputs_of
from ..testing.unit_frames import merged_outputs, reference_frame
from . import preview_screen, quick_session, source_watch

_PAUSE_SECONDS = 0.1
"""Between two looks at the files."""
_NEEDS_STREAM = "sessions"
"""The processing type whose functions Spark has in streams only."""
_ONLY_STREAMS = "is not supported with batch"
"""What Spark says of a function that it has in streams only (UnsupportedOperationChecker)."""


def show(spark: SparkSession, job: Job, sample: Sample, console: Console, rows: int) -> None:
    """Print sample rows and what becomes of them. Raises JobError for a mistake of the user's."""
    started, context = time.monotonic(), unconnected(job)
    # A group is made of many rows.
    made_rows = sample.make(sample.approved if job.kind.is_grouping else rows)
    taken = row_queue.dealt(made_rows, context.settings.queues)
    made = _outputs(spark, context, sample, taken)
    had, has = _halves(spark, context, sample, taken)
    made, seconds = {**made, **has}, time.monotonic() - started
    console.print(
        preview_screen.screen(
            console,
            context.job,
            taken,
            made,
            rows,
            seconds,
            now=time.time(),
            had=had,
            more_by=sample.more_by,
        )
    )
    if len(taken) < sample.approved:
        console.print(f"`make approve` takes {counted(sample.approved, 'row')}; ROWS= shows more")


def _outputs(
    spark: SparkSession, context: JobContext, sample: Sample, taken: list[dict[str, Any]]
) -> Outputs:
    """Return the outputs; without a stream where that gives the same rows, in a third of the time.

    It does for repeats, groups and windows, once the watermark has passed them all.
    """
    if context.job.processing != _NEEDS_STREAM:
        try:
            with quick_session.static_deduplication():
                return unstreamed_outputs_of(
                    spark, context, taken, sample.reference, sample.references
                )
        except AnalysisException as error:
            if _ONLY_STREAMS not in str(error):
                raise
    rows = taken + sample.closing(context.job, taken)[:1]
    return outputs_of(spark, context, rows, sample.reference, sample.references)


def _halves(
    spark: SparkSession, context: JobContext, sample: Sample, taken: list[dict[str, Any]]
) -> tuple[Outputs, Outputs]:
    """Return what outputs with MERGE have after the first half of the rows, and after all."""
    job, half = context.job, len(taken) // 2
    if not job.merge or not half or job.kind.is_stateful:
        return {}, {}
    known = reference_frame(spark, context, sample.reference) if job.reference else None
    batches = taken[:half], taken[half:]
    had, has = merged_outputs(spark, context, batches, known, sample.references)
    return had, has


def watch(spark: SparkSession, root: Path, package: str, console: Console, rows: int) -> None:
    """Show the preview now, and again whenever a file is saved, until Ctrl-C."""
    known: source_watch.Times | None = None
    while True:
        now = source_watch.times_of(root, package)
        if now == known:
            time.sleep(_PAUSE_SECONDS)
            continue
        known = now
        console.clear()
        try:
            with user_errors.user_code("the job or its sample cannot be imported"):
                job, sample = source_watch.imported(package)
            verify(job)
            show(spark, job, sample, console, rows)
        except JobError as error:
            console.print(str(error), style="red", markup=False)
        except PySparkException as error:
            problem = f"{cause(str(error))}{user_errors.place(error)}"
            console.print(problem, style="red", markup=False)
        console.print(f"watching src/{package} and sample/; Ctrl-C ends")
