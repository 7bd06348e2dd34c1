"""The owner's sample: rows to try the job with, and what must come of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..blame import user_code
from ..errors import JobError
from ..job import Job

Row = Mapping[str, Any]
#: How often each output row, as a tuple of its columns, appears.
Counted = Counter[tuple[Any, ...]]

_HOUR = 3_600_000_000
_START = 1_704_067_200_000_000  # 2024-01-01T00:00:00Z


@dataclass(frozen=True)
class Sample:
    """``sample/rows.py`` and ``sample/expected.py`` as one value."""

    #: ``rows(count, seed, start_us)`` yields rows with the columns of QUEUE, whose event time goes
    #: forward from ``start_us`` (microseconds since 1970).
    rows: Callable[[int, int, int], Iterable[Row]]
    #: The column of the event time; None for rows without one, in `map` and `join`.
    event_time: str | None
    #: The output rows of such rows, in any order.
    expected: Callable[[Sequence[Row]], Iterable[Row]]
    #: For a join: the rows of the reference table.
    reference: Sequence[Row] = ()

    def make(self, count: int, seed: int = 1, start_us: int = _START) -> list[dict[str, Any]]:
        """Return ``count`` rows or, where some are published twice, a few more."""
        with user_code("rows() in sample/rows.py failed"):
            made = [dict(row) for row in self.rows(count, seed, start_us)]
        if not made:
            raise JobError("rows() in sample/rows.py yields no rows", "yield at least one")
        if self.event_time is not None and self.event_time not in made[0]:
            raise JobError(
                f"EVENT_TIME in sample/rows.py is {self.event_time!r}, no column of its rows",
                "name the column of the event time, or None for rows without one",
            )
        return made

    def wanted(self, job: Job, rows: Sequence[Row]) -> Counted:
        """Return how often each output row must appear."""
        with user_code("expected() in sample/expected.py failed"):
            made = self.expected(rows)
            made = [*made] if made is not None else None
        if made is None:
            raise JobError("expected() in sample/expected.py returns None", "return its rows")
        names = compared(job)
        for name in names:
            if lacking := next((row for row in made if name not in row), None):
                raise JobError(
                    f"expected() in sample/expected.py gives a row without {name!r}: {lacking}",
                    "give every column of OUTPUTS in tables.py",
                )
        return counted(made, names)

    def closing(self, job: Job, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Return rows to send one after the other to bring out what waits for the watermark.

        The first one moves the watermark on, and the batch of the second one runs under it.
        """
        if job.processing != "window" or self.event_time is None:
            return []
        last = rows[-1]
        later = type(last[self.event_time])(max(int(row[self.event_time]) for row in rows) + _HOUR)
        return [{**last, self.event_time: later} for _ in range(2)]


def compared(job: Job) -> list[str]:
    """Return the output columns that ``expected`` computes: all but the guarantee's position."""
    position = {"queue_id", "tablet_index", "row_index"}
    return [
        column.name
        for column in job.output_columns["output"]
        if not (column.key and column.name in position)
    ]


def counted(rows: Iterable[Row], columns: Sequence[str]) -> Counted:
    """Return how often each combination of ``columns`` is there."""
    return Counter(tuple(_plain(row[column]) for column in columns) for row in rows)


def _plain(value: Any) -> Any:
    """Return a value that can be counted: YSON's own types compare by their attributes, too."""
    if value is None or isinstance(value, bool | bytes):
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return tuple((str(name), _plain(item)) for name, item in sorted(value.items()))
    if isinstance(value, Sequence):
        return tuple(map(_plain, value))
    return bool(value) if type(value).__name__ == "YsonBoolean" else value
