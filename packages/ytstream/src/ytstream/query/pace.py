"""How many rows of each partition the next batch may read, so that it takes the seconds wanted.

`batch_seconds` asks for it. A tablet transaction has to end within 20 to 30 s, and how many rows
fit into that only the batches show. Values only: batch.py measures, and the connector's source
heeds the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: Rows of a partition that a query's first batch may read: no batch has shown how long they take.
FIRST_ROWS = 1_000
#: The next batch is at most so many times as large, or as small.
_MORE, _LESS = 4.0, 8.0
#: What no batch is faster than.
_LEAST_SECONDS = 0.001


@dataclass(frozen=True)
class Pace:
    """The limit of the next batch."""

    #: What a batch should take.
    seconds: float
    #: `max_rows_per_partition`: the tables are made for batches of so many rows, and `check` says
    #: whether they are.
    most: int
    #: Rows of each partition.
    rows: int

    def after(self, read: int, seconds: float) -> Pace:
        """Return the pace after a batch that has read up to ``read`` rows of a partition.

        One that did not reach its limit shows that a batch must be smaller, or nothing: the time
        that more rows take is not known.
        """
        fitting = read * self.seconds / max(seconds, _LEAST_SECONDS)
        if read < self.rows and (not read or fitting >= self.rows):
            return self
        wanted = min(max(fitting, self.rows / _LESS), self.rows * _MORE)
        return replace(self, rows=min(max(1, int(wanted)), self.most))


def first(seconds: float, most: int) -> Pace:
    """Return the pace of a query's first batch."""
    return Pace(seconds, most, min(FIRST_ROWS, most))
