"""sample/ as `adopt` writes it: the rows that were read, and what must come of them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ytstream.declaration.validation import reads_reference
from ytstream.schema.columns import Column, type_name

from ..demo.event_times import text as time_text
from . import starter_texts
from .python_text import WIDTH, printable, quoted, shortened
from .reference_source import Reference
from .starter_files import Starter


def rows(starter: Starter, reference: str = "") -> str:
    """Return the text of sample/rows.py, with the rows of the reference table of a join."""
    times, has_time = starter.found.event_time, starter.uses_time
    name = quoted(times.column.name) if times is not None and has_time else "None"
    about = "#: The column of the event time, which goes forward from one row to the next.\n"
    if times is not None and not has_time:
        about += (
            "#: None is enough for this processing type; "
            f"{printable(times.column.name)} looks like one.\n"
        )
    saved = ""
    if times is not None and has_time:
        saved = (
            f"    event_time=EVENT_TIME,\n    event_time_type={quoted(times.kind)},\n"
            f"    first_us={times.first_us:_},  # {time_text(times.first_us)}\n"
            f"    last_us={times.last_us:_},  # {time_text(times.last_us)}\n"
        )
    if starter.pace > 1 and has_time:
        saved += (
            "    # Faster than in the queue: the rows are repeated, and none may be of the "
            f"future.\n    pace={starter.pace},\n"
        )
    naming = [starter.found.key.column] if starter.found.key else []
    if (naming := list(starter.found.unique) or naming) and has_time:
        names = ", ".join(quoted(column.name) for column in naming)
        saved += f"    unique=({names},),\n"
    more_by = f"    more_by={quoted(starter.more_by)},"
    saved += more_by + "  # noqa: E501" * (len(more_by) > WIDTH)
    return starter_texts.ROWS.format(
        origin=starter.origin,
        warning="\n".join(textwrap.wrap(starter.warning, WIDTH - 1)),
        event_time=f"{about}EVENT_TIME: str | None = {name}",
        start=f", {time_text(starter.start_us)}" if has_time else "",
        start_us=f"{starter.start_us:_}",
        saved=saved.rstrip("\n"),
        reference=reference,
    )


def reference_rows(starter: Starter, columns: Sequence[Column], own: str | None) -> str:
    """Return REFERENCE of sample/rows.py: the user's rows, or one for each key of the sample.

    ``columns`` are those of REFERENCE in tables.py.
    """
    if starter.joined is not None:
        about = f"For the keys of the sample, from\n#: {shortened(starter.joined.path)}."
        return starter_texts.REFERENCE_ROWS.format(
            about=about, rows=_saved(file_of(starter.joined))
        )
    if own not in (None, "[]"):
        return starter_texts.REFERENCE_ROWS.format(about="As they were.", rows=own)
    keys = [column.name for column in columns if column.key]
    known = {column.name for column in starter.source.columns}
    part = next((part for part in starter.parts if [part.column.name] == keys), None)
    if part is None and (len(keys) != 1 or keys[0] not in known):
        about = "There are none yet: write some that the sample can join."
        return starter_texts.REFERENCE_ROWS.format(about=about, rows="[]")
    others = ", ".join(
        f"{quoted(column.name)}: {_made_up(column)}" for column in columns if not column.key
    )
    about = "Made up, one for each key of the sample: write your own."
    row = f"{{{quoted(keys[0])}: key, {others}}}"
    values = f"SAVED.values({quoted(keys[0])})"
    if part is not None:
        found = dict.fromkeys(part.value(row) for row in starter.source.rows)
        values = repr([value for value in found if value is not None])
    rows = f"[{row} for key in {values}]"
    return starter_texts.REFERENCE_ROWS.format(about=about, rows=rows)


def looked_up_rows(starter: Starter) -> str:
    """Return REFERENCES of sample/rows.py: the rows that lookup() finds for the sample."""
    if not starter.looked_up:
        return ""
    lines = "".join(map(_looked_up, starter.looked_up))
    return starter_texts.REFERENCES_ROWS.format(rows=f"{{\n{lines}}}")


def _looked_up(found: Reference) -> str:
    if not is_saved(found):
        return f"    # None yet: write some.\n    {quoted(found.name)}: [],\n"
    about = "    # Made up: write your own.\n" if found.why else ""
    return f"{about}    {quoted(found.name)}: {_saved(file_of(found))},\n"


def is_saved(found: Reference) -> bool:
    """Return whether its rows have a file: the cluster's, and those that are made up."""
    return bool(found.rows or not found.why)


def sample(starter: Starter) -> str:
    """Return the text of sample/__init__.py."""
    given = {"reference": "rows.REFERENCE"} if reads_reference(starter.job) else {}
    if starter.looked_up:
        given["references"] = "rows.REFERENCES"
    return starter_texts.SAMPLE.format(
        package=starter.job.package,
        reference="".join(f", {name}={value}" for name, value in given.items()),
        given="".join(f"    {name}={value},\n" for name, value in given.items()),
    )


def file_of(reference: Reference) -> str:
    """Return the file with the rows of a reference: of lookup(), or of a join."""
    return f"reference-{reference.name}.yson" if reference.name else "reference.yson"


def _saved(file: str) -> str:
    return f"SavedRows(Path(__file__).with_name({quoted(file)})).all"


def _made_up(column: Column) -> str:
    """Return the expression of a value of a reference row."""
    if type_name(column.type) in ("utf8", "string"):
        return f"{quoted(f'{column.name} of ')} + str(key)"
    return "0" if column.required else "None"
