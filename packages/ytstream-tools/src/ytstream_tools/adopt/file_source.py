"""Columns and rows of a file: for a queue that does not exist yet, or that cannot be reached.

A file of Parquet has types. In the others a column gets the type of its values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yt.type_info as ti
from yt.yson import YsonBoolean, YsonUint64

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.schema.columns import Column, spelled
from ytstream.schema.string_values import is_string
from ytstream.text_table import counted

from ..demo import sample_types, yson_rows
from . import csv_rows, json_rows, parquet_rows
from .json_rows import LongNumber
from .queue_source import Take
from .source_rows import Row, SourceRows, split

_LINES = 30
"""Plain lines about columns that a terminal has room for."""


@dataclass(frozen=True)
class _Read:
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    """What a person has to know about the values."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Why a column has the type that it has, where a person may expect another one."""


def read(file: Path, count: int, take: Take) -> SourceRows:
    """Read the file. Raises JobError for one that has no rows, or is not of a known form."""
    read_as = _READERS.get(file.suffix.lower())
    if read_as is None:
        raise JobError(
            f"FROM={file}: {file.suffix or 'a file without a suffix'} is not a known form",
            f"give a file of {', '.join(_READERS)}",
            code=ErrorCode.USAGE,
        )
    if not file.is_file():
        raise JobError(f"{file} does not exist", "correct FROM", code=ErrorCode.FILE)
    try:
        found = read_as(file)
    except (OSError, ValueError, RecursionError) as error:
        raise JobError(
            f"{file} cannot be read: {error}", "correct it", code=ErrorCode.FILE
        ) from error
    if not (rows := found.rows):
        raise JobError(f"{file} has no rows", "give another file", code=ErrorCode.NO_ROWS)
    kept, left = split(found.columns)
    names = {column.name for column in kept}
    chosen = _chosen(rows, count, take)
    plain = [{n: row.get(n) for n in row if n in names} for row in chosen]
    whole = [{name: row.get(name) for name in names} for row in plain]
    sample_types.verify(str(file), kept, whole, str(file))
    choice = "the last" if take is Take.NEWEST else "spread"
    return SourceRows(
        file.name,
        kept,
        left,
        whole,
        choice,
        notes=found.notes,
        inferred=[*_inferred(kept, rows, found.doubts)],
        is_whole=len(chosen) == len(rows),
    )


def _inferred(
    columns: Sequence[Column], rows: Sequence[Row], doubts: Mapping[str, str]
) -> Iterator[str]:
    """Yield a line for each column: its type, from how many values, and what did not fit."""
    plain = 0
    for column in columns:
        doubt = doubts.get(column.name)
        plain += doubt is None
        if doubt is None and plain > _LINES:
            continue
        values = sum(row.get(column.name) is not None for row in rows)
        yield (
            f"{column.name}: {spelled(column.type)}, from {counted(values, 'value')}"
            + (f" of {len(rows)} rows" if values < len(rows) else "")
            + (f": {doubt}" if doubt else "")
        )
    if plain > _LINES:
        yield f"... and {plain - _LINES} more"


def _chosen(rows: Sequence[Row], count: int, take: Take) -> Sequence[Row]:
    if take is Take.NEWEST or len(rows) <= count:
        return rows[-count:]
    return [rows[number * len(rows) // count] for number in range(count)]


def _jsonl(file: Path) -> _Read:
    rows = json_rows.read(file)
    return _Read(*_typed(rows), doubts=_mixed(rows))


def _yson(file: Path) -> _Read:
    rows = yson_rows.read(file, "give a list of rows: yt read-table --format yson")
    return _Read(*_typed(rows), doubts=_mixed(rows))


def _csv(file: Path) -> _Read:
    names, rows, notes, doubts = csv_rows.read(file)
    return _Read(*_typed(rows, names), notes, doubts)


def _parquet(file: Path) -> _Read:
    return _Read(*parquet_rows.read(file))


def _mixed(rows: Sequence[Row]) -> dict[str, str]:
    """Return which kinds of values the columns have that have more than one."""
    kinds = dict[str, Counter[str]]()
    for row in rows:
        for name, value in row.items():
            if value is not None:
                kinds.setdefault(name, Counter())[_kind(value)] += 1
    return {
        name: ", ".join(counted(number, kind) for kind, number in found.most_common())
        for name, found in kinds.items()
        if len(found) > 1
    }


def _kind(value: Any) -> str:
    if isinstance(value, bool | YsonBoolean):
        return "boolean"
    if isinstance(value, LongNumber):
        return "long number"
    if is_string(value):
        return "text"
    if isinstance(value, int | float):
        return "number"
    return "object" if isinstance(value, Mapping) else "list"


def _typed(rows: Sequence[Row], names: Sequence[str] = ()) -> tuple[list[Column], list[Row]]:
    """Return columns that all rows fit; a column is required if no row lacks its value."""
    columns, to = [], dict[str, Callable[[Any], Any]]()
    for name in names or dict.fromkeys(name for row in rows for name in row):
        values = [row[name] for row in rows if row.get(name) is not None]
        type_, to[name] = _fitting(values)
        columns.append(Column(name, type_, required=len(values) == len(rows)))
    made = [{n: v if v is None else to[n](v) for n, v in row.items()} for row in rows]
    return columns, made


def _fitting(values: Sequence[Any]) -> tuple[Any, Callable[[Any], Any]]:
    """Return a type, and what makes the values those of the type. No number becomes another one."""
    type_ = _type_of(values)
    if not values or not all(map(_is_number, values)) or type_ in (ti.Int64, ti.Uint64):
        return type_, _unchanged
    if any(isinstance(value, LongNumber) or _loses_digits(value) for value in values):
        return ti.Utf8, _as_text
    return ti.Double, float


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | LongNumber) and not isinstance(value, bool)


def _loses_digits(value: float) -> bool:
    return isinstance(value, int) and float(value) != value


def _unchanged(value: Any) -> Any:
    return value


def _as_text(value: Any) -> str:
    return str(int(value) if isinstance(value, YsonUint64) else value)


def _type_of(values: Sequence[Any]) -> Any:
    def are(*kinds: type) -> bool:
        return all(isinstance(value, kinds) and not isinstance(value, bool) for value in values)

    if not values or all(isinstance(value, bool) for value in values):
        return ti.Bool if values else ti.Utf8
    if are(YsonUint64):
        return ti.Uint64
    if are(int) and min(values) >= -(2**63) and max(values) < 2**63:
        return ti.Int64
    if are(int) and min(values) >= 0 and max(values) < 2**64:
        return ti.Uint64
    if all(map(is_string, values)):
        return ti.Utf8 if are(str) else ti.String
    if are(list):
        inner = _type_of([item for value in values for item in value if item is not None])
        return ti.List[ti.Optional[inner]] if inner in (ti.Int64, ti.Utf8) else ti.Yson
    return ti.Yson


_READERS = {
    ".jsonl": _jsonl,
    ".yson": _yson,
    ".parquet": _parquet,
    ".csv": _csv,
}
