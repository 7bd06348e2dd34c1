"""What the rows suggest: the event time, a key, a column to group by, and lengths."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ytstream.schema.columns import Column, type_name
from ytstream.schema.string_values import is_string, shown

from ..demo import event_times
from .source_rows import Row

_SECOND = 1_000_000
_EARLIEST = 631_152_000 * _SECOND
"""1990 in microseconds: a number that is a smaller time is seldom a time."""
UNCAST = ("datetime", "datetime64", "timestamp64", "date32", "uint64")
"""SPYT's own types of times, which Spark's SQL cannot cast (SPYT, spyt/types.py)."""
_LENGTHS = {
    1: "1 second",
    5: "5 seconds",
    10: "10 seconds",
    30: "30 seconds",
    60: "1 minute",
    300: "5 minutes",
    600: "10 minutes",
    1_800: "30 minutes",
    3_600: "1 hour",
    3 * 3_600: "3 hours",
    6 * 3_600: "6 hours",
    12 * 3_600: "12 hours",
    86_400: "1 day",
    7 * 86_400: "7 days",
    30 * 86_400: "30 days",
    365 * 86_400: "365 days",
}
"""Lengths that people choose, in seconds, and how Spark writes them."""
_WINDOWS = 20
"""At most so many windows in the sample."""
_LEAST_LATENESS = 10
"""Seconds: clocks of hosts differ, and a short sample has no row that is behind."""
_NAMED = 10
"""Of so many rows, a column that names rows may have no value in one."""
_GROUP = 3
"""Rows of one group, at least, on the average."""
_MADE = ("rows", "window_start", "window_end")
"""Names of an output's columns that a first transform() makes."""
_ROW_KEYS = ("utf8", "int64", "uint64")
"""Types that can name a row."""
_KEYS = ("utf8", "string", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
"""Types that can name a group."""


@dataclass(frozen=True)
class EventTime:
    """A column that looks like the event time."""

    column: Column
    first_us: int
    last_us: int
    behind_us: int
    """How far a row lies behind the newest one before it, at most, in microseconds."""
    growing: float
    """The part of the rows that are not earlier than the row before."""
    rows: int
    """How many rows have a time that can be right."""

    @property
    def step_us(self) -> int:
        """How far apart the rows lie on the average, in microseconds."""
        return (self.last_us - self.first_us) // max(self.rows - 1, 1)

    @property
    def kind(self) -> str:
        """The type of the column."""
        return type_name(self.column.type)

    @property
    def expression(self) -> str:
        """The Spark expression of the time, as a timestamp."""
        name = f"`{self.column.name}`"
        if self.kind == "timestamp":
            return name
        if self.kind == "date" or self.kind in ("utf8", "string"):
            to = "CAST({} AS TIMESTAMP)" if self.kind == "date" else "try_to_timestamp({})"
            return to.format(name)
        unit = event_times.unit_us(self.sample, self.kind)
        functions = {1_000_000: "seconds", 1_000: "millis", 1: "micros"}
        if unit in functions:
            return f"timestamp_{functions[unit]}({name})"
        return f"timestamp_micros({name} div 1000)"

    sample: Any = None
    """A value of the column, which tells the unit of a plain number."""


@dataclass(frozen=True)
class Named:
    """A column whose values can name a row or a group."""

    column: Column
    values: int
    """How many different values it has."""
    rows: int
    """How many rows have a value."""


@dataclass(frozen=True)
class Proposals:
    """What the rows suggest."""

    event_time: EventTime | None
    unique: Sequence[Column]
    """Columns whose values differ from row to row."""
    key: Named | None
    """The column that names a row best. Rows that are duplicated have equal values."""
    group: Named | None
    """A column with few values."""
    grouping: Named | None
    """The column to group or to join by if there must be one: the group, or the next best."""
    rows: int = 0
    """How many rows there are."""
    apart_us: int = 0
    """How far apart two rows with one value of the key lie by event time, at most."""

    @property
    def first_us(self) -> int:
        """The first event time, in microseconds; 0 without one."""
        return self.event_time.first_us if self.event_time else 0

    @property
    def _span(self) -> int:
        """The seconds from the first event time to the last."""
        times = self.event_time
        return (times.last_us - times.first_us) // _SECOND if times else 0

    @property
    def window(self) -> str:
        """A length of windows such that the sample fills several."""
        return nearest(self._span // _WINDOWS)

    @property
    def windows(self) -> int:
        """About how many windows of this length the sample fills."""
        return max(round(self._span / seconds_of(self.window)), 1)

    @property
    def lateness(self) -> str:
        """More than any row lies behind the newest one before it, and than two rows lie apart.

        Two rows of different tablets may change places.
        """
        times = self.event_time
        return _above(max(times.behind_us, times.step_us) if times else 0)

    @property
    def lateness_of_repeats(self) -> str:
        """The same, and more than two rows with one key lie apart: a key is known for as long."""
        return max((self.lateness, _above(self.apart_us)), key=seconds_of)


def of(columns: Sequence[Column], rows: Sequence[Row]) -> Proposals:
    """Look at the rows."""
    times = sorted(_event_times(columns, rows), key=_rank, reverse=True)
    event_time = times[0] if times else None
    named = [
        Named(column, _distinct(column, rows), _present(column, rows))
        for column in columns
        if type_name(column.type) in _KEYS
        and (event_time is None or column.name != event_time.column.name)
    ]
    keys = [one for one in named if type_name(one.column.type) in _ROW_KEYS]
    unique = [one for one in keys if one.values == len(rows) > 1]
    # Rows may be duplicated: the job may be there to drop them. A few may have no value.
    likely = [
        one
        for one in keys
        if one.rows * _NAMED >= len(rows) * (_NAMED - 1) and one.values * 2 > len(rows)
    ]
    key = max(likely, key=lambda one: one.values, default=None)
    possible = [one for one in named if one.values and one.column.name.lower() not in _MADE]
    few = [one for one in possible if 2 <= one.values <= max(len(rows) // _GROUP, 2)]
    # A text names a thing more often than a number does; then the one with the most values.
    group = max(
        few,
        key=lambda one: (is_text(one.column), one.values**2 <= len(rows), one.values),
        default=None,
    )
    fewest = min(possible, key=lambda one: (one.values < 2, one.values), default=None)
    return Proposals(
        event_time,
        unique=[one.column for one in unique],
        key=key,
        group=group,
        grouping=group or fewest,
        rows=len(rows),
        apart_us=_apart(event_time, key, rows) if event_time and key else 0,
    )


def is_text(column: Column) -> bool:
    """Return whether the column has texts."""
    return type_name(column.type) in ("utf8", "string")


def seconds_of(length: str) -> int:
    """Return the seconds of a length that nearest() has given."""
    return next(seconds for seconds, text in _LENGTHS.items() if text == length)


def nearest(seconds: int) -> str:
    """Return the smallest length that is not shorter."""
    return next(
        (text for least, text in _LENGTHS.items() if seconds <= least), [*_LENGTHS.values()][-1]
    )


def _above(microseconds: int) -> str:
    """Return the smallest length that is longer."""
    return nearest(max(microseconds // _SECOND + 1, _LEAST_LATENESS))


def _rank(found: EventTime) -> tuple[bool, bool, float, int]:
    """Return what makes a column a better event time: it grows, its type is a time, it goes far."""
    is_time = found.kind in event_times.UNITS
    return found.growing > 0.9, is_time, found.growing, found.last_us - found.first_us


def _event_times(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[EventTime]:
    now = time.time_ns() // 1_000
    for column in columns:
        kind = type_name(column.type)
        if kind in UNCAST or kind not in (*event_times.UNITS, *_KEYS):
            continue
        values = [row[column.name] for row in rows if row[column.name] is not None]
        found = [event_times.microseconds(value, kind) for value in values[:20]]
        if not found or any(at is None for at in found):  # texts that are not times
            continue
        times = [at for value in values if (at := event_times.microseconds(value, kind))]
        right = sorted(at for at in times if _EARLIEST <= at <= now)
        if len(right) < max(len(rows) // 2, 1) or right[0] == right[-1]:
            continue
        if kind not in event_times.UNITS and not _is_plausible(values, right):
            continue
        growing = sum(a <= b for a, b in pairwise(times)) / max(len(times) - 1, 1)
        behind = _behind(times, now)
        yield EventTime(column, right[0], right[-1], behind, growing, len(right), values[0])


def _is_plausible(values: Sequence[Any], right: Sequence[int]) -> bool:
    """Return whether a plain number or a text is a time: numbers of rows and ids are not."""
    if all(map(is_string, values)):
        return True
    return len(right) == len(values) and min(values) > 600_000_000


def _behind(times: Sequence[int], now: int) -> int:
    newest, behind = 0, 0
    for at in times:
        if _EARLIEST <= at <= now:
            behind = max(behind, newest - at)
            newest = max(newest, at)
    return behind


def _apart(times: EventTime, key: Named, rows: Sequence[Row]) -> int:
    """Return the longest time, in microseconds, between rows with one value of the key."""
    seen = dict[str, tuple[int, int]]()
    for row in rows:
        value, at = row[key.column.name], row[times.column.name]
        at = None if at is None else event_times.microseconds(at, times.kind)
        if value is None or at is None or not times.first_us <= at <= times.last_us:
            continue
        first, last = seen.get(shown(value), (at, at))
        seen[shown(value)] = min(first, at), max(last, at)
    return max((last - first for first, last in seen.values()), default=0)


def _present(column: Column, rows: Sequence[Row]) -> int:
    return sum(row[column.name] is not None for row in rows)


def _distinct(column: Column, rows: Sequence[Row]) -> int:
    return len({shown(row[column.name]) for row in rows if row[column.name] is not None})
