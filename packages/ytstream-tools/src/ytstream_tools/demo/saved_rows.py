"""The rows of a file as sample rows: as many as wanted, with event times that go on.

A sample is asked for more rows than the file has, and for rows of a later time. So the rows are
repeated, each round later than the one before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from yt.yson import YsonUint64

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.schema.string_values import canonical, is_string

from . import event_times, yson_rows

_DAY = 86_400_000_000
_ROUNDS = 64
"""Rounds of one seed; each round changes the values of ``unique``."""
_ROUND_BIT = 40
"""Where the number of a round goes in a whole number: above the bits of most ids."""
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)([T ])(\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True)
class SavedRows:
    """The rows of a file that `adopt` has written."""

    file: Path
    event_time: str | None = None
    """The column of the event time and its type in tables.py. Without it the rows stay as they are.
    """
    event_time_type: str = ""
    first_us: int = 0
    """The first and the last right event time, in microseconds. Other times are kept as they are.
    """
    last_us: int = 0
    unique: Collection[str] = ()
    """Columns whose values differ from row to row: another round has other values."""
    pace: int = 1
    """How many times faster than in the file the event times go on."""
    more_by: str | None = None
    """The command that takes other rows; empty if the file has all that there are."""

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def all(self) -> list[dict[str, Any]]:
        """The rows of the file as they are, such as those of a reference."""
        return [dict(row) for row, _ in self._rows] if self.file.stat().st_size else []

    def values(self, column: str) -> list[Any]:
        """Return the different values of a column, but null, in the order of the file."""
        found = (row[column] for row, _ in self._rows if row[column] is not None)
        return list(dict.fromkeys(found))

    def repeated(self, count: int, seed: int, start_us: int) -> Iterator[dict[str, Any]]:
        """Yield ``count`` rows, over and over; the first event time is ``start_us``."""
        return islice(self._endless(seed, start_us), count)

    def _endless(self, seed: int, start_us: int) -> Iterator[dict[str, Any]]:
        number = (seed - 1) * _ROUNDS
        is_as_saved = start_us == self.first_us and self.pace == 1
        while True:
            for row, time_us in self._rows:
                # A row before the first right time would be late in every round but the first.
                if is_as_saved or time_us is None or time_us >= self.first_us:
                    shift = 0 if time_us is None else self._shift(time_us, start_us)
                    yield self._moved(row, time_us, shift, number)
            number += 1
            is_as_saved = False
            start_us += self._period

    def _shift(self, time_us: int, start_us: int) -> int:
        """Return how much later the event time is in a round that begins at ``start_us``."""
        return start_us + (time_us - self.first_us) // self.pace - time_us

    @cached_property
    def _rows(self) -> list[tuple[Mapping[str, Any], int | None]]:
        """The rows in the order of their event times, each with its time in microseconds.

        A row without a time, or with a wrong one, follows the row that it follows in the file.
        """
        found = yson_rows.read(self.file, "run `make adopt` again")
        if not found:
            raise JobError(
                f"{self.file} has no rows", "run `make adopt` again", code=ErrorCode.NO_ROWS
            )
        times = [self._time(row) for row in found]
        if self.event_time is None:
            return list(zip(found, times, strict=True))
        place, places = self.first_us, []
        for number, time_us in enumerate(times):
            if time_us is not None and time_us <= self.last_us:
                place = time_us
            has_time = time_us is not None and self.first_us <= time_us <= self.last_us
            places.append((place, not has_time, number))
        order = sorted(range(len(found)), key=lambda number: places[number])
        return [(found[number], times[number]) for number in order]

    @property
    def _period(self) -> int:
        """The time from one round to the next, in microseconds."""
        span_us = (self.last_us - self.first_us) // self.pace
        return period_us(span_us, len(self._rows), self.event_time_type)

    def _time(self, row: Mapping[str, Any]) -> int | None:
        value = row.get(str(self.event_time))
        return None if value is None else event_times.microseconds(value, self.event_time_type)

    def _moved(
        self, row: Mapping[str, Any], time_us: int | None, shift: int, number: int
    ) -> dict[str, Any]:
        made = dict(row)
        is_right = time_us is not None and time_us <= self.last_us
        if self.event_time is not None and shift and is_right and time_us is not None:
            made[self.event_time] = moved(
                row[self.event_time], self.event_time_type, time_us, shift
            )
        if number:
            made |= {name: other(made[name], number) for name in self.unique if name in made}
        return made


def period_us(span_us: int, rows: int, kind: str) -> int:
    """Return the time from one round of rows to the next, in whole units of their type."""
    unit = _DAY if kind in ("date", "date32") else 1_000_000
    return -(-(span_us + span_us // max(rows, 1) + 1) // unit) * unit


def moved(value: Any, kind: str, time_us: int, shift: int) -> Any:
    """Return an event time that is ``shift`` microseconds later, written as it was."""
    if not is_string(value):
        return event_times.moved(value, kind, time_us + shift)
    match = _ISO.fullmatch(str(canonical(value)))
    if match is None:
        return value
    day, between, clock, fraction, zone = match.groups()
    digits = len(fraction or ".") - 1
    from_clock = event_times.microseconds(f"{day}T{clock}", "") or 0
    within = int(((fraction or ".0")[1:] + "000000")[:6])
    whole, part = divmod(from_clock + within + shift, 1_000_000)
    date, _, time = _iso(whole).partition("T")
    more = f".{part:06d}"[: digits + 1] if digits else ""
    return f"{date}{between}{time}{more}{zone or ''}"


def _iso(seconds: int) -> str:
    return (event_times.EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def other(value: Any, number: int) -> Any:
    """Return the value of the round ``number`` for a value that no other row has."""
    if is_string(value):
        return f"{canonical(value)!s}-{number}"
    if isinstance(value, int) and not isinstance(value, bool):
        changed = int(value) ^ (number << _ROUND_BIT)
        return YsonUint64(changed) if isinstance(value, YsonUint64) else changed
    return value
