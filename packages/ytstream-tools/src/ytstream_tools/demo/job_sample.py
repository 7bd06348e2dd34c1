"""The owner's sample: rows to try the job with, and what must come of them."""

from __future__ import annotations

import ctypes
import inspect
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yt.type_info as ti
from yt.yson import YsonEntity

from ytstream.declaration.user_errors import user_code
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import REJECTED, Job
from ytstream.schema import string_values
from ytstream.schema.columns import Column, type_name

from . import event_times, sample_types

SampleRow = Mapping[str, Any]
Counted = Counter[tuple[Any, ...]]
"""How often each output row, as a tuple of its columns, appears."""

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_START = 1_704_067_200_000_000  # 2024-01-01T00:00:00Z
_FUTURE = 4_133_980_800_000_000  # 2101-01-01T00:00:00Z

EARLIER = (
    "Let rows() in sample/rows.py begin earlier (the default of its start_us), or put its rows "
    "closer together in time"
)
"""How sample rows leave the future."""


@dataclass(frozen=True)
class Sample:
    """The sample of a job: sample/rows.py and sample/expected.py as one value."""

    rows: Callable[[int, int, int], Iterable[SampleRow]]
    """``rows(count, seed, start_us)`` yields rows with the columns of QUEUE. Event times begin at
    ``start_us`` (microseconds since 1970) and mostly increase."""
    event_time: str | None
    """The column of the event time: a time, a number of seconds to nanoseconds since 1970, or ISO
    8601 text. None if `map`, `join` or `aggregate` has no event time."""
    expected: Callable[[Sequence[SampleRow]], Iterable[SampleRow]]
    """Returns the expected rows of "output" for the given rows, in any order."""
    others: Mapping[str, Callable[[Sequence[SampleRow]], Iterable[Any]]] = field(
        default_factory=dict
    )
    """The same for the other outputs, by name. For "rejected": pairs of reason and row."""
    reference: Sequence[SampleRow] = ()
    """For a join: the rows of the reference table."""
    references: Mapping[str, Sequence[SampleRow]] = field(default_factory=dict)
    """The rows of each reference that lookup() reads, by its name in REFERENCES."""
    approved: int = 500
    """How many rows `make approve` takes."""
    ignored: Collection[str] = ()
    """Columns of outputs that tests ignore because they differ from run to run."""
    more_by: str | None = None
    """The command that takes other rows. Empty if the source has no more rows, None if unknown."""

    def references_of(self, name: str) -> Sequence[SampleRow]:
        """Return the rows of a reference. Raises JobError if the sample has none."""
        if name not in self.references:
            raise JobError(
                f"sample/ has no rows of the reference {name}",
                f"give Sample references={{{name!r}: [...]}} in sample/__init__.py, from "
                "sample/rows.py",
                code=ErrorCode.SAMPLE,
            )
        return self.references[name]

    @property
    def start_us(self) -> int:
        """Where the event time of the first rows is: the default that rows() gives it."""
        given = inspect.signature(self.rows).parameters.get("start_us")
        return given.default if given and isinstance(given.default, int) else _START

    def make(self, count: int, seed: int = 1, start_us: int | None = None) -> list[dict[str, Any]]:
        """Return ``count`` rows or, where some are published twice, a few more."""
        start = self.start_us if start_us is None else start_us
        with user_code("rows() in sample/rows.py failed"):
            made = _rows("rows() in sample/rows.py", self.rows(count, seed, start))
        if not made:
            raise JobError(
                "rows() in sample/rows.py yields no rows",
                "yield at least one",
                code=ErrorCode.SAMPLE,
            )
        if self.event_time is not None and self.event_time not in made[0]:
            raise JobError(
                f"EVENT_TIME in sample/rows.py is {self.event_time!r}, no column of its rows",
                "name the column of the event time, or None for rows without one",
                code=ErrorCode.SAMPLE,
            )
        return made

    def wanted(self, job: Job, rows: Sequence[SampleRow], output: str = "output") -> Counted:
        """Return how often each row of the output must appear. Raises JobError for a wrong row."""
        maker = self.expected if output == "output" else self.others.get(output)
        if maker is None:
            raise JobError(
                f"sample/ does not say which rows the output {output} must have",
                f"give Sample others={{{output!r}: ...}} in sample/__init__.py",
                code=ErrorCode.SAMPLE,
            )
        what = f"{getattr(maker, '__name__', 'expected')}() in sample/expected.py"
        try:
            with user_code(f"{what} failed"):
                given: Iterable[Any] = maker(rows)
                if is_rejected(job, output):
                    given = [{REASON: reason, **row} for reason, row in given]
                made = _rows(what, given)
            sample_types.verify_expected(what, compared(job, output), made)
        except JobError:  # a wrong value in a row that it was given says more
            plain = ({c.name: row.get(c.name) for c in job.queue_columns} for row in rows)
            sample_types.verify("rows() in sample/rows.py", job.queue_columns, plain)
            raise
        return self.leveled(job, output, counted(made, compared(job, output)))

    def leveled(self, job: Job, output: str, rows: Counted) -> Counted:
        """Return the rows with null in the columns that are ignored."""
        places = [
            n for n, column in enumerate(compared(job, output)) if column.name in self.ignored
        ]
        if not places:
            return rows
        level = Counted()
        for row, count in rows.items():
            level[tuple(None if n in places else value for n, value in enumerate(row))] += count
        return level

    def closing(self, job: Job, rows: Sequence[SampleRow]) -> list[dict[str, Any]]:
        """Return rows to send one after the other to bring out what waits for the watermark.

        The first one moves the watermark on, and the batch of the second one runs under it. They
        are of yesterday, or later where the rows are, but not from the future.
        """
        if job.processing not in ("window", "sessions") or self.event_time is None:
            return []
        now = time.time_ns() // 1_000
        yesterday = now - now % _DAY - _DAY + _HOUR * 3 // 2
        later = max(yesterday, min(self.newest(job, rows) + _HOUR, now))
        last = self.passing(job, rows)[-1]
        value = event_times.moved(last[self.event_time], self._kind(job), later)
        if value is None:  # only rows() knows how its texts look
            last = self.passing(job, self.make(1, len(rows) + 1, later))[0]
            value = last[self.event_time]
        return [{**last, self.event_time: value} for _ in range(2)]

    def future(self, job: Job) -> list[dict[str, Any]]:
        """Return a few rows whose event time is in the year 2101. Raises JobError for others."""
        made = self.make(5, start_us=_FUTURE)
        # By the reckoning of rows() itself: expected() would keep them out.
        found = event_times.microseconds(made[0][str(self.event_time)], self._kind(job))
        if found is None or found < _FUTURE - _DAY:
            first = string_values.shown(made[0][str(self.event_time)])
            raise JobError(
                f"rows() in sample/rows.py does not begin at its start_us: {self.event_time} of "
                f"the first row is {first}, with start_us={_FUTURE}",
                "add start_us to the times of the rows, counted from the first one",
                code=ErrorCode.SAMPLE,
            )
        return made

    def newest(self, job: Job, rows: Sequence[SampleRow]) -> int:
        """Return the newest event time of the rows that REJECT lets through, in microseconds."""
        return max(self._times(job, rows), default=self.start_us)

    def ahead(self, job: Job, rows: Sequence[SampleRow]) -> str | None:
        """Return a remark if REJECT may keep out rows of the future that expected() takes."""
        has_watermark = job.kind.is_stateful and job.kind.output_mode == "append"
        if not (has_watermark and is_rejected(job, REJECTED) and self.event_time):
            return None
        now = time.time_ns() // 1_000
        early = [time_us for time_us in self._times(job, rows) if time_us > now]
        if not early:
            return None
        return (
            f"{len(early)} of {len(rows)} sample rows lie in the future by their "
            f"{self.event_time}, up to {event_times.text(max(early))}, and sample/expected.py "
            f"takes them: where REJECT keeps them out, rows are lost. {EARLIER}"
        )

    def _times(self, job: Job, rows: Sequence[SampleRow]) -> list[int]:
        """Return the event times of rows that pass, in microseconds. Raises JobError for none."""
        kind, found = self._kind(job), []
        values = (row[str(self.event_time)] for row in self.passing(job, rows))
        for value in (value for value in values if value is not None):
            time_us = event_times.microseconds(value, kind)
            if time_us is None:
                raise JobError(
                    f"EVENT_TIME in sample/rows.py is {self.event_time!r}, and "
                    f"{string_values.shown(value)} in it is not a time",
                    "name a column of times, of seconds, milliseconds, microseconds or "
                    "nanoseconds since 1970, or of texts such as 2024-01-01T00:00:00Z",
                    code=ErrorCode.SAMPLE,
                )
            found.append(time_us)
        return found

    def _kind(self, job: Job) -> str:
        """Return the type of the event time's column."""
        columns = (column for column in job.queue_columns if column.name == self.event_time)
        return next((type_name(column.type) for column in columns), "")

    def passing(self, job: Job, rows: Sequence[SampleRow]) -> Sequence[SampleRow]:
        """Return the rows that REJECT lets through; all of them if it keeps out each."""
        if not is_rejected(job, REJECTED):
            return rows
        out = {values[1:] for values in self.wanted(job, rows, REJECTED)}
        return [row for row in rows if _values(row, job.queue_columns) not in out] or rows


def _rows(what: str, made: object) -> list[dict[str, Any]]:
    """Return what a function of the sample made. Raises JobError unless it is rows."""
    if isinstance(made, Mapping):
        raise JobError(
            f"{what} returns one row", "yield it, or return a list", code=ErrorCode.SAMPLE
        )
    rows: list[dict[str, Any]] = []
    for row in made if isinstance(made, Iterable) else [made]:
        if not isinstance(row, Mapping):
            raise JobError(
                f"{what} gives {row!r}, wanted rows",
                "yield a dict for each row",
                code=ErrorCode.SAMPLE,
            )
        rows.append(dict(row))
    return rows


class Float32(float):
    """A float of 32 bits, of which the seventh digit depends on how it was computed."""


_NAN = math.nan
"""One object for all: a NaN equals only itself, and in a counter by its identity."""


REASON = "$reason"
"""The reason beside the columns of a rejected row; no column of a queue begins with $."""


def is_rejected(job: Job, output: str) -> bool:
    """Return whether the output is the one of rejected rows."""
    return job.rejects and output == REJECTED


def compared(job: Job, output: str = "output") -> list[Column]:
    """Return the columns in which an output is compared: all but the guarantee's position.

    A rejected row is compared with the queue's row at its position.
    """
    if is_rejected(job, output):
        return [Column(REASON, ti.Utf8, required=True), *job.queue_columns]
    position = {"queue_id", "tablet_index", "row_index"}
    has_plain = output in job.static and job.guarantee == "idempotent"  # no column of it is a key
    return [
        column
        for column in job.output_columns[output]
        if not (column.name in position and (column.key or has_plain))
    ]


def counted(rows: Iterable[SampleRow], columns: Sequence[Column]) -> Counted:
    """Return how often each combination of ``columns`` is there."""
    return Counter(_values(row, columns) for row in rows)


def _values(row: SampleRow, columns: Sequence[Column]) -> tuple[Any, ...]:
    return tuple(_plain(row[column.name], column.type) for column in columns)


def _plain(value: Any, type_: Any) -> Any:
    """Return a value that can be counted; the pairs of a dict have no order, as in Spark."""
    kind = type_name(type_)
    if kind == "optional":
        return _plain(value, type_.item)
    if value is None:
        return None
    if kind == "list":
        return tuple(_plain(item, type_.item) for item in value)
    if kind == "dict":
        pairs = ((_plain(key, type_.key), _plain(item, type_.value)) for key, item in value)
        return tuple(sorted(pairs, key=repr))
    if kind == "struct":
        return tuple((name, _plain(value[name], item)) for name, item in type_.items)
    if kind == "tuple":
        return tuple(map(_plain, value, type_.items))
    if kind == "double":  # expected() may give a whole number
        value = float(value)
    if kind == "float" and value == value:  # the table holds 32 bits of it
        return Float32(ctypes.c_float(value).value + 0.0)
    return untyped(value)


def untyped(value: Any) -> Any:
    """Return the same for a scalar, or for what a column of any type holds.

    YSON's own types compare by their attributes, too.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, YsonEntity):  # a null inside a value of `any`; it has no hash
        return None
    if string_values.is_string(value):
        return string_values.canonical(value)
    for kind in (int, float):
        if isinstance(value, kind):
            return _NAN if value != value else kind(value)
    if isinstance(value, Mapping):
        pairs = sorted((string_values.as_bytes(name), item) for name, item in value.items())
        return tuple((string_values.canonical(name), untyped(item)) for name, item in pairs)
    if isinstance(value, Sequence):
        return tuple(map(untyped, value))
    return bool(value) if type(value).__name__ == "YsonBoolean" else value
