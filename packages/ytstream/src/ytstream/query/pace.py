"""How many rows of each partition the next batch may read, so that it takes the seconds wanted.

`batch_seconds` asks for it. A tablet transaction has to end within 20 to 30 s, and how many rows
fit into that only the batches show. A batch takes some time without a row, and some for each row:
two batches of different sizes tell one from the other. Values only: batch.py measures, and the
connector's source heeds the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

FIRST_ROWS = 1_000
"""Rows of a partition that the first batch of all may read: no batch has shown how long they take.
"""
_MORE, _LESS = 4.0, 8.0
"""The next batch is at most so many times as large, or as small."""
_LEAST_SECONDS = 0.001
"""What no batch is faster than."""
_REMEMBERED = 8
"""How many batches the times are taken from, besides the smallest one."""
_ROWS_SHARE = 0.5
"""A row takes at least this part of what it takes if a batch takes no time without one: two noisy
batches must not make the next one too large."""
_LEAST_SHARE = 0.5
"""A batch that takes less time for its rows than without them is not worth its fixed part."""
_TRIAL, _TRIAL_SECONDS = 2.0, 5.0
"""As long as all batches have the same size, one is made so many times as large to learn from it,
if that takes at most so many seconds."""


@dataclass(frozen=True)
class Pace:
    """The limit of the next batch."""

    seconds: float
    """What a batch should take."""
    most: int
    """`max_rows_per_partition`: the tables are made for batches of so many rows, and `check` says
    whether they are."""
    rows: int
    """Rows of each partition."""
    seen: tuple[tuple[int, float], ...] = ()
    """Batches of this query: the most rows of a partition that one has read, and its seconds."""
    is_warm: bool = False
    """Whether the query's first batch is over: it takes seconds to make Spark's plan."""

    def after(self, read: int, seconds: float) -> Pace:
        """Return the pace after a batch that has read up to ``read`` rows of a partition.

        One that did not reach its limit shows that a batch must be smaller, or nothing: the time
        that more rows take is not known.
        """
        if not read:
            return self
        if not self.is_warm:
            return replace(self, is_warm=True)
        learned = replace(self, seen=_kept(self.seen, (read, max(seconds, _LEAST_SECONDS))))
        fitting = learned._fitting()
        if read < self.rows and fitting >= self.rows:
            return learned
        wanted = min(max(fitting, self.rows / _LESS), self.rows * _MORE)
        return replace(learned, rows=min(max(1, int(wanted)), self.most))

    @property
    def shortest(self) -> float | None:
        """The seconds that a batch takes at least, where that is more than wanted; else None."""
        fixed = _fixed(self.seen)
        least = fixed / _LEAST_SHARE if fixed else 0.0
        return least if least > self.seconds else None

    def _fitting(self) -> float:
        """Return the rows of a batch that takes as long as it should, or as short as it can."""
        read, seconds = self.seen[-1]
        fixed = _fixed(self.seen)
        if fixed is None:
            is_short = seconds * _TRIAL <= _TRIAL_SECONDS
            return max(read * self.seconds / seconds, read * _TRIAL if is_short else 0.0)
        a_row = max((seconds - fixed) / read, _ROWS_SHARE * seconds / read)
        return max(self.seconds - fixed, fixed * (1 / _LEAST_SHARE - 1)) / a_row


def _kept(
    seen: Sequence[tuple[int, float]], new: tuple[int, float]
) -> tuple[tuple[int, float], ...]:
    """Return the batches to remember: the last ones, and the smallest of all in the first place."""
    smallest = min([*seen, new])
    last = [*seen, new][-_REMEMBERED:]
    return (*(() if smallest in last else (smallest,)), *last)


def _fixed(seen: Sequence[tuple[int, float]]) -> float | None:
    """Return the seconds of a batch without rows; None if the batches have about the same size.

    It is where the line through the smallest and the largest batch begins.
    """
    if not seen:
        return None
    (few, fast), (many, slow) = min(seen), max(seen)
    if many < _TRIAL * few:
        return None
    a_row = max(0.0, slow - fast) / (many - few)
    return min(max(0.0, fast - few * a_row), *(seconds for _, seconds in seen))


def first(seconds: float, most: int, rows: int = 0) -> Pace:
    """Return the pace of a query's first batch, which may read ``rows``; 0: not known yet."""
    return Pace(seconds, most, min(rows or FIRST_ROWS, most))


def after_failure(rows: int) -> int:
    """Return the limit for the first batch of the next query, after one that has failed.

    ``rows`` is the limit that the failed query had reached.
    """
    return max(min(FIRST_ROWS, rows), rows // 2)
