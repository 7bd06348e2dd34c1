"""From columns and rows to files: what would be written, a preview, and the writing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ytstream.declaration import validation
from ytstream.declaration.validation import MOST_COLUMNS
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.guarantees import guarantee_of
from ytstream.job import Job
from ytstream.schema.columns import Column, resolved, spelled, type_name
from ytstream.schema.string_values import shown
from ytstream.text_table import counted

from ..demo import any_json, yson_rows
from ..demo.event_times import UNITS, microseconds
from ..demo.event_times import text as time_text
from ..demo.saved_rows import period_us
from ..testing.approved_outputs import TEST
from . import (
    masks,
    owned_files,
    payloads,
    proposals,
    reference_source,
    sample_files,
    tables_file,
)
from .payloads import Part
from .proposals import EventTime, Proposals
from .reference_source import Reference
from .source_rows import SourceRows, verify_known
from .starter_files import Starter

_MOST_ROWS = 30_000
"""Rows that the demo or a test takes of a sample, and more."""
_DAY = 86_400_000_000
ROWS = "sample/rows.yson"
_ROWS, _COLUMNS, _VALUE = 5, 6, 24
"""Rows and columns of the preview, and the width of a value."""
_TAKES_APART = ("map", "join", "aggregate")
"""Processing types whose first transform() takes objects apart: the others need an event time."""
_NAME = 60
"""The most letters of a column's name in an error."""

Ask = Callable[[str], bool]


@dataclass(frozen=True)
class PlannedFile:
    """A file that would be written, or removed."""

    path: str
    content: bytes | None
    """None: the file would be removed."""
    loses: str = ""
    """What happens to the user's edits; empty without any."""
    keeps_edits: bool = False
    """Whether some of the user's edits are still in it."""


def starter_of(
    job: Job,
    source: SourceRows,
    masked: Sequence[str],
    without: Sequence[str],
    references: Sequence[Reference] = (),
) -> Starter:
    """Return what the files are made of. Raises JobError for a wrong name."""
    verify_known(without, source.columns, "WITHOUT")
    source = replace(source, rows=masks.masked(source.rows, source.columns, masked))
    source = source.without(without, "WITHOUT names it")
    source = source.without(_of_position(job, source), "the job adds a column of this name")
    if not source.columns:
        raise JobError(
            f"{source.origin}: no column is left", "leave fewer columns out", code=ErrorCode.USAGE
        )
    _verify_limits(job, source)
    parts = payloads.of(source.columns, source.rows) if job.processing in _TAKES_APART else []
    found = proposals.of(source.columns, source.rows)
    if parts:
        found = _with_parts(found, source, parts)
    references = [reference_source.filled(one, source) for one in references]
    starter = Starter(
        job, source, found, masked, found.first_us, parts=parts, references=references
    )
    if not starter.uses_time or found.event_time is None:
        return starter
    start_us, pace = _repetition(found.event_time, len(source.rows))
    return replace(starter, start_us=start_us, pace=pace)


def _with_parts(found: Proposals, source: SourceRows, parts: Sequence[Part]) -> Proposals:
    """Return the proposals with a group and a key that may be fields of an `any` column."""
    columns = [*source.columns, *(part.column for part in parts)]
    rows = [{**row, **{part.column.name: part.value(row) for part in parts}} for row in source.rows]
    more = proposals.of(columns, rows)
    key = found.key or more.key
    return replace(found, key=key, group=more.group, grouping=more.grouping)


def _verify_limits(job: Job, source: SourceRows) -> None:
    """Raise JobError for columns that no table of YTsaurus can have: nothing is written then."""
    for column in source.columns:
        try:
            resolved("QUEUE", [column])
        except JobError as error:
            name = column.name if len(column.name) <= _NAME else f"{column.name[:_NAME]}..."
            raise JobError(
                f"{source.origin}: no table can have the column {name!r}: {error.remedy}",
                "rename the column in the file",
                code=ErrorCode.USAGE,
            ) from error
    keys = guarantee_of(job).key(job.queue_count) or ()
    if (count := len(source.columns)) > MOST_COLUMNS - len(keys):
        raise JobError(
            f"{source.origin}: {count} columns. A row of a YTsaurus table has at most "
            f"{MOST_COLUMNS} values" + (f", and the job adds {', '.join(keys)}" if keys else ""),
            "leave columns out: WITHOUT=COLUMN,...",
            code=ErrorCode.USAGE,
        )


def _of_position(job: Job, source: SourceRows) -> set[str]:
    """Return the columns that have the name of one that the job adds: see validation.py."""
    added = {*guarantee_of(job).position, *(["queue_id"] if job.queue_count > 1 else [])}
    return {column.name for column in source.columns if column.name.lower() in added}


def _repetition(times: EventTime, rows: int) -> tuple[int, int]:
    """Return where the sample begins, and its pace.

    Its last repetition is in the past then: a row of the future is rejected.
    """
    rounds = _MOST_ROWS // rows + 2
    room = time.time_ns() // 1_000 - 2 * _DAY  # since 1970
    span = times.last_us - times.first_us
    pace = 1
    while rounds * period_us(span // pace, rows, times.kind) > room and pace < span:
        pace *= 2
    latest = room - rounds * period_us(span // pace, rows, times.kind)
    start = times.first_us if times.first_us <= latest else max(latest - latest % _DAY, 0)
    return start, pace


def planned(root: Path, starter: Starter) -> list[PlannedFile]:
    """Return the files to write."""
    before = owned_files.adopted(root)
    known = owned_files.examples(root), before

    def edited(path: str) -> bool:
        return owned_files.is_edited(root, path, *known)

    package = f"src/{starter.job.package}"
    tables, transform = f"{package}/tables.py", f"{package}/transform.py"
    lost = "is overwritten"
    # The outputs and the logic go together.
    is_new = starter.has_logic and not (edited(tables) or edited(transform))
    kept = None if is_new else tables_file.with_queue(root / tables, starter)
    is_new = kept is None
    files = list[PlannedFile]()
    if kept is None:
        files += [
            _python(tables, starter.tables(), lost if edited(tables) else ""),
            _python(transform, starter.transform(), lost if edited(transform) else ""),
        ]
    else:
        replaced = "its QUEUE is replaced" if edited(tables) else ""
        files.append(replace(_python(tables, kept, replaced), keeps_edits=bool(replaced)))
    rows = sample_files.rows(
        starter, _reference_rows(root, starter, is_new) + sample_files.looked_up_rows(starter)
    )
    for found in filter(sample_files.is_saved, starter.references):
        name = sample_files.file_of(found)
        data = b"".join(map(yson_rows.line_of, found.rows))
        files.append(PlannedFile(f"sample/{name}", data))
    files.append(_python("sample/rows.py", rows, lost if edited("sample/rows.py") else ""))
    data = b"".join(map(yson_rows.line_of, starter.source.rows))
    files.append(PlannedFile(ROWS, data, lost if edited(ROWS) else ""))
    examples = ("sample/__init__.py", "sample/expected.py", "tests/test_transform.py")
    # What the example expects of its own rows is wrong for others.
    if not any(map(edited, examples)):
        files += [
            _python("sample/__init__.py", sample_files.sample(starter)),
            _python("tests/test_transform.py", TEST),
        ]
        if (root / "sample/expected.py").exists():
            files.append(PlannedFile("sample/expected.py", None))
    return [*files, _digests(before, files)]


def _digests(before: owned_files.Digests, files: Sequence[PlannedFile]) -> PlannedFile:
    """Return the file by which the next `adopt` knows what this one has written."""
    own = {
        file.path: owned_files.digest(file.content.decode(errors="replace"))
        for file in files
        if file.content is not None and not file.keeps_edits
    }
    text = json.dumps({**before, **own}, indent=2, sort_keys=True)
    return PlannedFile(owned_files.ADOPTED, f"{text}\n".encode())


def _reference_rows(root: Path, starter: Starter, is_new: bool) -> str:
    """Return the part of sample/rows.py about the reference table; empty without one."""
    if not validation.reads_reference(starter.job):
        return ""
    if is_new:
        return sample_files.reference_rows(starter, starter.reference, None)
    own = owned_files.literal(root / "sample/rows.py", "REFERENCE")
    return sample_files.reference_rows(starter, starter.job.reference_columns, own)


def _python(path: str, text: str, loses: str = "") -> PlannedFile:
    return PlannedFile(path, owned_files.formatted(text, path).encode(), loses)


def adopt(
    root: Path, starter: Starter, console: Console, *, overwrite: bool, ask: Ask | None
) -> int:
    """Show what would be written, and write it; ``ask`` is None without a terminal.

    Raises JobError where something of the user's would be lost and nobody can be asked.
    """
    files = planned(root, starter)
    show(console, starter, files)
    lost = [f"{file.path} {file.loses}" for file in files if file.loses]
    if lost and not overwrite:
        if ask is None:
            raise JobError(
                "you have edited files, and this command has no terminal to ask: "
                f"{'; '.join(lost)}. "
                "Nothing was written",
                "commit your edits and give OVERWRITE=1 (--overwrite)",
                code=ErrorCode.FILE,
            )
        if not ask(f"{'; '.join(lost)}. Go on?"):
            console.print("nothing was written")
            return 1
    for file in files:
        if file.content is None:
            (root / file.path).unlink()
        else:
            (root / file.path).write_bytes(file.content)
    console.print("\n".join(_next(starter, files)), markup=False, soft_wrap=True)
    return 0


def ask_at_terminal() -> Ask | None:
    """Return a function that asks the person at the terminal; None without one."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None

    def ask(question: str) -> bool:
        try:
            return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:  # Ctrl-D
            return False

    return ask


def show(console: Console, starter: Starter, files: Sequence[PlannedFile]) -> None:
    """Print columns, rows, proposals and files."""
    source = starter.source
    rows = counted(len(source.rows), "row")
    console.print(
        f"{source.origin}: {counted(len(source.columns), 'column')}, {rows} ({source.choice})",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    chosen = source.columns[:_COLUMNS]
    table = Table(*(escape(f"{column.name}\n{spelled(column.type)}") for column in chosen))
    for row in source.rows[:_ROWS]:
        table.add_row(*(escape(_short(row[column.name], column)) for column in chosen))
    console.print(table)
    if more := len(source.columns) - len(chosen):
        console.print(f"and {more} more column{'s' * (more > 1)}")
    for left in source.left_out:
        console.print(f"skipped: {left.name}, {left.type}: {left.why}", markup=False)
    for line in source.inferred:
        console.print(f"column {line}", markup=False, soft_wrap=True)
    for note in source.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    for reference in starter.references:
        console.print(str(reference), markup=False, soft_wrap=True)
    for line in _proposed(starter):
        console.print(f"proposal: {line}", markup=False, soft_wrap=True)
    for file in files:
        what = "remove" if file.content is None else "write"
        console.print(f"{what} {file.path}{file.loses and f': {file.loses}'}", markup=False)


def _proposed(starter: Starter) -> Iterator[str]:
    found = starter.found
    yield from starter.seen()
    if found.event_time is None:
        return
    match starter.job.processing:
        case "window":
            yield f"WINDOW {found.window}, LATENESS {starter.lateness}"
        case "deduplicate":
            yield f"LATENESS {starter.lateness}"


def _next(starter: Starter, files: Sequence[PlannedFile]) -> Iterator[str]:
    paths = {file.path for file in files}
    yield f"warning: {starter.warning}"
    transform = f"src/{starter.job.package}/transform.py"
    if transform in paths:
        yield f"Next: edit {transform}, then `make approve`, `make lint test demo`."
        return
    why = "you have edited it" if starter.has_logic else starter.lacks
    yield f"{transform} and OUTPUTS are as they were: {why}."
    yield "Next: make them, sample/ and tests/ fit QUEUE, then `make lint test demo`."


def _short(value: object, column: Column) -> str:
    kind = type_name(column.type)
    is_time = kind in UNITS and isinstance(value, int)
    at = microseconds(value, kind) if is_time else None
    text = time_text(at) if at is not None else _plain(value, kind)
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 3]}..."


def _plain(value: object, kind: str) -> str:
    is_any = kind in ("yson", "any") and value is not None
    return any_json.text(value) if is_any else shown(value)
