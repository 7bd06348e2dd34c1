"""`capture`: the rows of a batch as a folder of the repository's tests.

The folder has the rows, those of the reference, and a test of its own, which lets the job read them
on the minicluster: `make test` finds it.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.text_table import counted

from ..demo.yson_rows import write
from . import batch_rows, captured_references
from .batch_rows import NUMBER, PARTITION, QUEUE, CapturedRow

FOLDER, ROWS, REFERENCE = "tests/captured", "rows.yson", "reference.yson"
"""Below the folder of the repository; the names of a captured batch's files."""
REFERENCES, OF = "references.yson", "$reference"
"""The rows of all references that lookup() reads; OF names the reference of a row."""
TEST = '''"""{what}, captured from {proxy}."""

from __future__ import annotations

from pathlib import Path

from ytstream.testing import captured
from ytstream.testing.stream import Stream


def test_{name}(stream: Stream) -> None:
    captured.{call}
'''
"""The test beside them."""


def capture(
    context: JobContext, root: Path, word: str, reason: str | None, without: Sequence[str]
) -> str:
    """Write the folder, and return what was done. Raises JobError, and writes nothing then."""
    if reason is None:
        name, ranges = batch_rows.ranges_of(context, word)
        rows, trimmed = batch_rows.rows_of(context, ranges)
        what, call = f"Batch {name}", "run_through(stream, Path(__file__).parent)"
        name = f"batch_{name.replace('-', '_')}"
    else:
        rows, trimmed = batch_rows.rejected_of(context, reason)
        what, call = "Rows that REJECT keeps out", "accepted(stream, Path(__file__).parent)"
        name = "rejected_" + re.sub(r"\W+", "_", reason.lower()).strip("_")
    if trimmed:
        raise JobError(
            "; ".join(trimmed),
            "name a younger batch: `status` lists the last ones",
            code=ErrorCode.ROWS_TRIMMED,
        )
    if not rows:
        raise JobError(f"{what} has read no rows", "name another one", code=ErrorCode.NO_ROWS)
    _verify_columns(context, rows, without)
    folder = root / FOLDER / name
    if folder.exists():
        raise JobError(
            f"{folder.relative_to(root)} is there already",
            "remove it, or keep it",
            code=ErrorCode.FILE,
        )
    reference = batch_rows.reference_of(context)
    notes: list[str] = []
    at = batch_rows.looked_up_in(context, word) if reason is None else {}
    looked_up = captured_references.of(context, rows, at, notes.append)
    folder.mkdir(parents=True)
    write(folder / ROWS, [_left(row, without) for row in rows])
    if context.settings.reference is not None:
        write(folder / REFERENCE, [_left(row, without) for row in reference])
    if looked_up:
        listed = [{OF: name, **row} for name, known in looked_up.items() for row in known]
        write(folder / REFERENCES, [_left(row, without) for row in listed])
    text = TEST.format(what=what, proxy=context.settings.proxy, name=name, call=call)
    (folder / f"test_{name}.py").write_text(text, encoding="utf-8")
    return (
        f"{counted(len(rows), 'row')} in {folder.relative_to(root)}: `make test` runs them\n"
        "they are somebody's data: look at them before you commit them (--without leaves columns "
        "out)" + "".join(f"\n{note}" for note in notes)
    )


def _left(row: CapturedRow, without: Sequence[str]) -> CapturedRow:
    return {name: value for name, value in row.items() if name not in without}


def _verify_columns(
    context: JobContext, rows: Sequence[CapturedRow], without: Sequence[str]
) -> None:
    job = context.job
    columns = [*job.reference_columns]
    columns += [column for listed in job.lookup_columns.values() for column in listed]
    known = {*rows[0], *(column.name for column in columns)}
    known -= {QUEUE, PARTITION, NUMBER}
    keys = {column.name for column in columns if column.key}
    if unknown := {*without} - known:
        raise JobError(
            f"no column {', '.join(sorted(unknown))} to leave out",
            f"known: {', '.join(sorted(known))}",
            code=ErrorCode.USAGE,
        )
    if both := keys & {*without}:
        raise JobError(
            f"{', '.join(sorted(both))} is the reference's key, without which no row is found",
            "leave other columns out",
            code=ErrorCode.USAGE,
        )
