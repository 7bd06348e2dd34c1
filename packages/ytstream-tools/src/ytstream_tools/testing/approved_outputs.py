"""The outputs of the sample rows as files for review: `make approve` writes, `make test` compares.

A file has one output, a row a line, sorted: git shows what a change does to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import Job, JobContext
from ytstream.text_table import counted as number_of

from ..demo import row_queue, yson_rows
from ..demo.demo_tables import OutputCounts, compare
from ..demo.job_sample import Sample, compared, counted
from ..repository import root_of
from . import rule_counts
from .computed_outputs import Outputs, outputs_of
from .job_stream import assert_exact

Row = Mapping[str, Any]
FOLDER = "sample/expected"
"""Below the folder of the repository."""
TEST = '''"""YOURS. REJECT and transform() alone: the sample's outputs are those approved."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sample import SAMPLE
from ytstream.job import JobContext
from ytstream.testing.approved import assert_approved


def test_outputs_are_as_approved(spark: SparkSession, context: JobContext) -> None:
    assert_approved(spark, context, SAMPLE)
'''
"""A test that compares."""
_STEADY = (
    "-> compute what is random, or is of a clock, from columns of the row, or name such columns in "
    "`ignored` of the sample"
)
_HINT = "-> correct transform.py or, if these outputs are right now, run `make approve`"


def approve(spark: SparkSession, context: JobContext, sample: Sample) -> list[str]:
    """Write the outputs of the sample rows; return a line for each file that has changed."""
    root = root_of(context.job.package)
    rows = _rows_of(context, sample)
    folder, made = root / FOLDER, _outputs(spark, context, sample, rows)
    folder.mkdir(exist_ok=True)
    gone = [file for file in sorted(folder.glob("*.yson")) if file.stem not in made]
    said = [f"{FOLDER}/{file.name}: removed, there is no such output" for file in gone]
    for file in gone:
        file.unlink()
    for name, found in made.items():
        file = folder / f"{name}.yson"
        lines = sorted(map(yson_rows.line_of, found))
        before = file.read_bytes().splitlines(keepends=True) if file.exists() else None
        file.write_bytes(b"".join(lines))
        kept = (Counter(before or ()) & Counter(lines)).total()
        gone_lines, new_lines = len(before or ()) - kept, len(lines) - kept
        change = f", {gone_lines} lines gone, {new_lines} new"
        same = "" if before is None else ", as before" if before == lines else change
        said.append(f"{FOLDER}/{file.name}: {number_of(len(lines), 'row')}{same}")
    said += [f"computed from {number_of(len(rows), 'row')} of the sample"]
    if differing := _differing(context.job, sample, made, _outputs(spark, context, sample, rows)):
        said.append(f"{differing}\n{_STEADY}")
    said += rule_counts.lines(context.job, made, sample.more_by)
    tests = root / "tests"
    if not any("testing.approved" in file.read_text("utf-8") for file in tests.glob("test_*.py")):
        (tests / "test_approved.py").write_text(TEST, encoding="utf-8")
        said.append("tests/test_approved.py: compares with these files")
    return said


def assert_approved(spark: SparkSession, context: JobContext, sample: Sample) -> None:
    """Fail unless the outputs of the sample rows are those in sample/expected/.

    Args:
        spark: the session of the fixture
        context: the job, of the fixture
        sample: the rows of the project, of the fixture
    """
    folder, job = root_of(context.job.package) / FOLDER, context.job
    if not folder.is_dir():
        pytest.skip("no output is approved yet: run `make approve`")
    made = of_sample(spark, context, sample)
    outcomes, hint = _outcomes(job, sample, folder, made), _HINT
    if any(found.lost or found.duplicated for found in outcomes.values()):
        differing = _differing(job, sample, made, of_sample(spark, context, sample))
        hint = f"{differing}\n{_STEADY}" if differing else _HINT
    assert_exact(job, outcomes, hint)


def of_sample(spark: SparkSession, context: JobContext, sample: Sample) -> Outputs:
    """Return the outputs of the sample rows, without the columns that are not compared."""
    return _outputs(spark, context, sample, _rows_of(context, sample))


def _differing(job: Job, sample: Sample, made: Outputs, again: Outputs) -> str:
    """Return that two runs over the same rows differ, and in which outputs; empty if not."""
    compared_all = {name: _compare(job, sample, name, made[name], again[name]) for name in made}
    names = [name for name, found in compared_all.items() if found.lost or found.duplicated]
    return f"the job is not deterministic: two runs differ in {', '.join(names)}" if names else ""


def _compare(
    job: Job, sample: Sample, name: str, wanted: Iterable[Row], found: Iterable[Row]
) -> OutputCounts:
    """Compare the rows of an output, without the columns that are not compared."""
    columns, empty = compared(job, name), dict.fromkeys(sample.ignored)
    expected, came = (
        counted(({**empty, **row} for row in rows), columns) for rows in (wanted, found)
    )
    return compare(expected, came)


def _rows_of(context: JobContext, sample: Sample) -> list[dict[str, Any]]:
    rows = row_queue.dealt(sample.make(sample.approved), context.settings.queues)
    # The last one moves the watermark; a batch without rows then writes what it has passed.
    return rows + sample.closing(context.job, rows)[:1]


def _outputs(
    spark: SparkSession, context: JobContext, sample: Sample, rows: list[dict[str, Any]]
) -> Outputs:
    made = outputs_of(spark, context, rows, sample.reference, sample.references)
    return {
        name: [{key: row[key] for key in row if key not in sample.ignored} for row in found]
        for name, found in made.items()
    }


def _outcomes(job: Job, sample: Sample, folder: Path, made: Outputs) -> Mapping[str, OutputCounts]:
    outcomes = {}
    for name, found in made.items():
        file = folder / f"{name}.yson"
        wanted = yson_rows.read(file, "run `make approve`, and look at what git shows")
        names = {column.name for column in compared(job, name)} - {*sample.ignored}
        if wrong := [row for row in wanted if row.keys() != names]:
            differing = ", ".join(sorted(wrong[0].keys() ^ names))
            raise JobError(
                f"{FOLDER}/{file.name} has other columns than the output {name}: {differing}",
                "run `make approve`, and look at what git shows",
                code=ErrorCode.SAMPLE,
            )
        outcomes[name] = _compare(job, sample, name, wanted, found)
    return outcomes
