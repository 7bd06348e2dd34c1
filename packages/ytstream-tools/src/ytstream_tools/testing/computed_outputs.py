"""What a job makes of rows where nothing fails: transform() over them in one session, no cluster.

For a sample without expected rows in plain Python. A demo or a test then shows that a killed job
writes the same rows. Whether they are right is for a person to say: `make approve`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from pyspark.sql import SparkSession

from ytstream.cluster.client import Client
from ytstream.guarantees import guarantee_of
from ytstream.job import REJECTED, Job, JobContext
from ytstream.settings.job_settings import SPYT, load
from ytstream.spark import session
from ytstream.spark.jvm_process import ended_by_interrupt

from ..demo import yson_rows
from ..demo.job_sample import REASON, SampleRow
from ..repository import root_of
from .stream_batches import stream_outputs
from .unit_frames import ReferenceRows, output_rows, reference_frame, rejected_rows, sample_outputs

Outputs = Mapping[str, list[dict[str, Any]]]
"""Name of an output -> its rows."""


class Computed:
    """Compute the expected rows with the job itself: for ``Sample``, instead of expected.py.

    Args:
        job: the declaration in job.py
        reference: for a join, the rows that ``Sample`` gets as well, ``rows.REFERENCE``
        references: for lookup(), the rows of each reference that ``Sample`` gets as well
    """

    def __init__(
        self,
        job: Job,
        reference: Sequence[SampleRow] = (),
        references: ReferenceRows | None = None,
    ) -> None:
        self._job, self._reference, self._references = job, reference, references
        # The outputs of rows that were asked for: each output is asked for in turn.
        self._known: dict[bytes, dict[str, list[dict[str, Any]]]] = {}

    def output(self, rows: Sequence[SampleRow]) -> list[dict[str, Any]]:
        """Return the rows of "output"."""
        return self._of("output", rows)

    def rejected(self, rows: Sequence[SampleRow]) -> Iterator[tuple[str, SampleRow]]:
        """Yield the reason and the row of each that REJECT keeps out."""
        for row in self._of(REJECTED, rows):
            yield row[REASON], {name: row[name] for name in row if name != REASON}

    def of(self, output: str) -> Callable[[Sequence[SampleRow]], list[dict[str, Any]]]:
        """Return the function that gives the rows of one more output."""
        return lambda rows: self._of(output, rows)

    def _of(self, output: str, rows: Sequence[SampleRow]) -> list[dict[str, Any]]:
        key = hashlib.sha256(b"".join(map(yson_rows.line_of, rows))).digest()
        known = self._known.setdefault(key, {})
        if output not in known:
            context = unconnected(self._job)
            with any_session(context) as spark:
                if output == REJECTED:  # needs no stream
                    known |= rejected_rows(spark, context, rows)
                else:
                    known |= outputs_of(spark, context, rows, self._reference, self._references)
        return known.get(output, [])


def unconnected(job: Job) -> JobContext:
    """Return the job with the settings of config/local.toml and no cluster.

    With SPYT's connector: nothing is read from a queue, so ytstream's need not be compiled.
    """
    settings = replace(load(root_of(job.package) / "config" / "local.toml"), connector=SPYT)
    reading = job.reading(len(settings.queues))
    return JobContext(cast("Client", None), settings, reading, guarantee_of(job))


@contextmanager
def any_session(context: JobContext) -> Iterator[SparkSession]:
    """Give the session that runs in this process, or open one and close it."""
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    opened = session.open_session(context)
    try:
        with ended_by_interrupt():
            yield opened
    finally:
        session.close(opened)


def outputs_of(
    spark: SparkSession,
    context: JobContext,
    rows: Sequence[SampleRow],
    reference: Sequence[SampleRow] = (),
    references: ReferenceRows | None = None,
) -> Outputs:
    """Return the rows of each output, as one micro-batch of ``rows`` makes them.

    Rows in one micro-batch are never late. A batch without rows follows, under the watermark.
    """
    if context.job.kind.is_stateful:
        # A stream that was interrupted may still write there.
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            streamed = stream_outputs(spark, context, Path(folder), rows, references=references)
        made = {name: output_rows(context, frame, name) for name, frame in streamed.items()}
        return {**made, **rejected_rows(spark, context, rows)}
    return unstreamed_outputs_of(spark, context, rows, reference, references)


def unstreamed_outputs_of(
    spark: SparkSession,
    context: JobContext,
    rows: Sequence[SampleRow],
    reference: Sequence[SampleRow] = (),
    references: ReferenceRows | None = None,
) -> Outputs:
    """Return the rows of each output without a stream: as if no group stayed open."""
    known = reference_frame(spark, context, reference) if context.job.reference else None
    return sample_outputs(spark, context, rows, known, references)
