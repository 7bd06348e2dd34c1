"""To which table of an archive each row of the preview goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yt.type_info as ti

from ytstream.job import Job
from ytstream.outputs.archives import REASONS
from ytstream.schema.columns import Column, type_name
from ytstream.schema.periods import Archive, named

from ..demo import event_times

TABLE = Column("$table", ti.Utf8, required=True)
"""Stands before the columns of an archive."""


def placed(
    job: Job, output: str, rows: Sequence[Mapping[str, Any]], now: float
) -> Iterator[dict[str, Any]]:
    """Yield the rows of an archive that has a column of times, each with its table."""
    archive = job.archives[output]
    kinds = {column.name: type_name(column.type) for column in job.output_columns[output]}
    for row in rows:
        by = str(archive.by)
        yield {
            TABLE.name: _table(archive, event_times.microseconds(row[by], kinds[by]), now),
            **row,
        }


def _table(archive: Archive, microseconds: int | None, now: float) -> str:
    second = None if microseconds is None else microseconds / 1_000_000
    if reason := archive.skipped(second, now):
        return f"rejected: {REASONS[reason].removeprefix('archive: ')}"
    return named(archive.begin(second or 0.0))


def remarks(job: Job) -> Iterator[str]:
    """Yield a line for each archive without a column of times."""
    for output in job.arrivals:
        yield f"{output}: a row goes to the table of the period in which it is written to the queue"
