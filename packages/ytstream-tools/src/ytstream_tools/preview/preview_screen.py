"""Rows of the sample, of the outputs and of `rejected`, face to face."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ytstream.job import Job
from ytstream.schema.columns import Column, type_name
from ytstream.schema.string_values import shown

from ..demo import event_times
from ..demo.job_sample import REASON, compared, is_rejected

_VALUE = 32
#: Columns that a screen has room for.
_COLUMNS = 10


def screen(
    job: Job,
    rows: Sequence[Mapping[str, Any]],
    outputs: Mapping[str, Sequence[Mapping[str, Any]]],
    most: int,
    seconds: float,
) -> RenderableType:
    """Return what the terminal shows: a table of the sample, and one for each output."""
    tables = [_table(f"sample: {len(rows)} rows", job.queue_columns, rows[:most])]
    for name, found in outputs.items():
        title = f"{name}: {len(found)} rows"
        columns = compared(job, name)
        if is_rejected(job, name):
            columns = [column for column in columns if column.name == REASON] + [*job.queue_columns]
        tables.append(_table(title, columns, found[:most]))
    return Group(Columns(tables, padding=(0, 2)), Text(f"computed in {seconds:.1f} s"))


def _table(title: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Table:
    chosen = columns[:_COLUMNS]
    more = len(columns) - len(chosen)
    caption = f"and {more} more column{'s' * (more > 1)}" if more else None
    table = Table(title=title, caption=caption)
    for column in chosen:
        table.add_column(escape(column.name.removeprefix("$")), overflow="fold")
    for row in rows:
        table.add_row(*_cells(chosen, row))
    return table


def _cells(columns: Sequence[Column], row: Mapping[str, Any]) -> Iterator[str]:
    for column in columns:
        value, kind = row.get(column.name), type_name(column.type)
        is_time = kind in event_times.UNITS and isinstance(value, int)
        text = (
            event_times.text(event_times.microseconds(value, kind) or 0)
            if is_time
            else (str(value) if isinstance(value, str) else shown(value))
        )
        yield escape(text if len(text) <= _VALUE else f"{text[: _VALUE - 3]}...")
