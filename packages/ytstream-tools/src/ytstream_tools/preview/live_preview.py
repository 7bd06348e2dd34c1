"""One Spark session, and transform() in it as often as a file is saved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from ytstream.declaration import user_errors
from ytstream.declaration.validation import verify
from ytstream.errors import JobError
from ytstream.job import Job
from ytstream.spark.spark_errors import cause

from ..demo.job_sample import Sample, SampleRow
from ..testing.computed_outputs import outputs_of, unconnected
from . import preview_screen, source_watch

#: Between two looks at the files.
_PAUSE_SECONDS = 0.1


def show(spark: SparkSession, job: Job, sample: Sample, console: Console, rows: int) -> None:
    """Print sample rows and what becomes of them. Raises JobError for a mistake of the user's."""
    started = time.monotonic()
    taken = _taken(job, sample, rows)
    made = outputs_of(spark, unconnected(job), taken, sample.reference)
    seconds = time.monotonic() - started
    console.print(preview_screen.screen(job, taken, made, rows, seconds))


def _taken(job: Job, sample: Sample, rows: int) -> Sequence[SampleRow]:
    """Return rows of the sample: for a grouping all that are approved, and what closes groups."""
    taken: list[dict[str, Any]] = sample.make(sample.approved if job.kind.is_grouping else rows)
    return taken + sample.closing(job, taken)[:1]


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
