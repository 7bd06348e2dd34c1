"""In which table each row of a job with an archive has to be, in plain Python.

A row is late if its hour was closed when its batch ran. While an hour is being closed it may be
either: late, or the last row of its table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.faults.sweep.oracle import Row, counted

HOUR = 3_600
MAIN, LATE = "table", "late rows"
REJECTED = "rejected"
TOO_OLD, TOO_NEW, TOO_LATE = (
    "archive: older than keep", "archive: ahead of the clock", "archive: late",
)  # fmt: skip
Place = tuple[str, int]
"""What a row is in, and the beginning of its hour: MAIN or LATE of an hour, or REJECTED."""
Entry = tuple[Place, str]
"""A row as a text, and what it is in."""


@dataclass(frozen=True)
class Sent:
    """A row of the queue, and what was closed when its batch ran."""

    row: Row
    closed: float
    """All tables of hours before it were shown when the row was sent."""
    complete: float
    """No hour after it was closed."""


@dataclass(frozen=True)
class Rules:
    """What the job makes of a row."""

    columns: Sequence[str]
    """Of the output."""
    queue_columns: Sequence[str]
    expected: Callable[[Sequence[Row]], Iterable[Row]]
    rejected: Callable[[Sequence[Row]], Iterable[tuple[str, Row]]]
    oldest: float
    newest: float
    """The hours of rows that belong to an hour."""
    late_is_rejected: bool

    def places(self, sent: Sent) -> list[Entry]:
        """Return where the row may be: in one place, or in one of two."""
        for reason, row in self.rejected([sent.row]):
            return [self.kept_out(row, reason)]
        hour = hour_of(sent.row)
        if hour < self.oldest or hour > self.newest:
            return [self.kept_out(sent.row, TOO_OLD if hour < self.oldest else TOO_NEW)]
        (row,) = ({**sent.row, **made} for made in self.expected([sent.row]))
        found = []
        if hour >= sent.closed:
            found.append(self.entry((MAIN, hour), row))
        if hour < sent.complete:
            late = self.entry((LATE, hour), row)
            found.append(self.kept_out(sent.row, TOO_LATE) if self.late_is_rejected else late)
        return found

    def entry(self, place: Place, row: Row) -> Entry:
        """Return a row of a table."""
        (text,) = counted([row], self.columns)
        return place, text

    def kept_out(self, row: Row, reason: str) -> Entry:
        """Return a row of `rejected`, which is the queue's row with the reason."""
        (text,) = counted([{**row, "reason": reason}], ["reason", *self.queue_columns])
        return (REJECTED, 0), text


def hour_of(row: Row) -> int:
    """Return when the hour of a row begins, in seconds since 1970."""
    return int(row["date_time"]) // 1_000_000 // HOUR * HOUR


def problems(rules: Rules, sent: Mapping[str, Sent], found: Counter[Entry]) -> Iterator[str]:
    """Yield each row that is not in its one place, or with other values, and each that is extra."""
    left = Counter(found)
    for name, one in sent.items():
        may = rules.places(one)
        at = next((entry for entry in may if left[entry] > 0), None)
        if at is None:
            yield f"{name} is not where it must be: {may}"
        else:
            left[at] -= 1
    if extra := [*left.elements()]:
        yield f"{len(extra)} rows are where none must be: {extra[:3]}"
