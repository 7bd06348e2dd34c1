"""Rows of the sample, of the outputs and of `rejected`, face to face.

Rows that are wider than the terminal become lists of column and value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ytstream.job import Job
from ytstream.schema.columns import Column, type_name
from ytstream.schema.string_values import shown

from ..demo import any_json, event_times
from ..demo.job_sample import REASON, compared, is_rejected
from ..testing import rule_counts
from . import archive_rows, changed_keys
from .archive_rows import TABLE
from .changed_keys import CHANGE, Changed

_VALUE = 32
_COLUMNS, _LISTED = 10, 100
"""Columns of a table, and of a list."""
_LONG_VALUE = 300
"""The longest value in a list: it has lines of its own."""


def screen(
    console: Console,
    job: Job,
    rows: Sequence[Mapping[str, Any]],
    outputs: Mapping[str, Sequence[Mapping[str, Any]]],
    most: int,
    seconds: float,
    *,
    now: float,
    had: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    more_by: str | None = None,
) -> RenderableType:
    """Return what the terminal shows: a table of the sample, and one for each output.

    ``now``: the time, in seconds since 1970, by which rows of archives are too old. ``had``: what
    the outputs with MERGE had before the second half of the sample. ``more_by``: see Sample.
    """
    tables = [_fitting(console, f"sample: {len(rows)} rows", job.queue_columns, rows[:most])]
    for name, found in outputs.items():
        title = f"{name}: {len(found)} rows"
        columns = compared(job, name)
        if is_rejected(job, name):
            columns = [column for column in columns if column.name == REASON] + [*job.queue_columns]
        elif had and name in had:
            found = [*changed_keys.changes(columns, had[name], found)]
            columns = [CHANGE, *columns]
        elif name in job.archives and name not in job.arrivals:
            found = [*archive_rows.placed(job, name, found[:most], now)]
            columns = [TABLE, *columns]
        tables.append(_fitting(console, title, columns, found[:most]))
    said = [*rule_counts.lines(job, outputs, more_by), *archive_rows.remarks(job)]
    if had:
        said.append(
            "-> of two halves of the sample: what the first one had made, and what is there"
        )
    said.append(f"computed in {seconds:.1f} s")
    return Group(Columns(tables, padding=(0, 2)), Text("\n".join(said)))


def _fitting(
    console: Console, title: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]
) -> RenderableType:
    """Return a table with a line for each row or, where that is too wide, for each value."""
    if not rows:
        return Text(title, style="italic")
    table = _table(title, columns, rows)
    wide = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    return (
        table if wide <= console.width and len(columns) <= _COLUMNS else _list(title, columns, rows)
    )


def _table(title: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(_name(column), overflow="fold")
    most = _VALUE if len(columns) > 1 else _LONG_VALUE
    for row in rows:
        table.add_row(*_cells(columns, row, most))
    return table


def _list(title: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with a section for each row."""
    chosen = columns[:_LISTED]
    more = len(columns) - len(chosen)
    caption = f"and {more} more column{'s' * (more > 1)}" if more else None
    table = Table("column", title=title, caption=caption)
    table.add_column("value", overflow="fold")
    for row in rows:
        for column, cell in zip(chosen, _cells(chosen, row, _LONG_VALUE), strict=True):
            table.add_row(_name(column), cell)
        table.add_section()
    return table


def _name(column: Column) -> str:
    return escape(column.name.removeprefix("$"))


def _cells(columns: Sequence[Column], row: Mapping[str, Any], most: int) -> Iterator[str]:
    for column in columns:
        value, kind = row.get(column.name), type_name(column.type)
        text = _text(value, kind)
        yield escape(text if len(text) <= most else f"{text[: most - 3]}...")


def _text(value: Any, kind: str) -> str:
    if isinstance(value, Changed):
        had, has = _text(value.had, kind), _text(value.has, kind)
        if had == has:  # times that differ by less than a second
            had, has = str(value.had), str(value.has)
        return f"{had} -> {has}"
    if kind in event_times.UNITS and isinstance(value, int):
        return event_times.text(event_times.microseconds(value, kind) or 0)
    if kind in ("yson", "any") and value is not None:
        return any_json.text(value)
    return str(value) if isinstance(value, str) else shown(value)
