"""Figures over time, out of batches: how long rows waited, how many were read, what was rejected.

The ledger does not say how many rows a queue had. But a batch that reads less of each partition
than a batch may has left none, so a row that waits later came after that batch began.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..status.job_status import FinishedBatch

LATE = "behind the watermark"
"""Under these names rows that Spark leaves out are shown among the rejected ones."""
WITHOUT_TIME = "without an event time"


@dataclass
class TimeBin:
    """The batches that ended in one part of a period."""

    begin: datetime
    read: float = 0.0
    """Estimated where batches were left out."""
    rejected: dict[str, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


def waits(
    batches: Sequence[FinishedBatch],
    most: int,
    pause: float,
    written: Mapping[int, datetime] | None = None,
) -> list[tuple[datetime, float]]:
    """Return the longest that a row can have waited, in seconds, when batches began and ended.

    ``most`` is how many rows a batch may read of a partition, ``pause`` how many seconds an idle
    job waits before it looks again. A batch whose predecessor was not read says nothing, unless
    ``written`` has the time at which the oldest of its rows was written.
    """
    found: list[tuple[datetime, float]] = []
    since: datetime | None = None  # every row that waits came after it
    before: FinishedBatch | None = None
    for batch in batches:
        if before is not None and since is not None and batch.number == before.number + 1:
            if batch.epoch == before.epoch and _left_none(before, most):  # idle since, if at all
                since = max(since, batch.started - timedelta(seconds=pause))
            found += _both(batch, since)
        elif written and batch.number in written:
            found += _both(batch, written[batch.number])
        if _left_none(batch, most):
            since = batch.started
            found.append((batch.ended, batch.seconds))
        before = batch
    return found


def unbounded(batches: Sequence[FinishedBatch], most: int) -> list[FinishedBatch]:
    """Return the batches of which the ledger does not say how long their rows can have waited.

    The period began with a backlog, and no batch has read all of it yet.
    """
    found = []
    for batch in batches:
        found.append(batch)
        if _left_none(batch, most):
            break
    return found


def _both(batch: FinishedBatch, since: datetime) -> list[tuple[datetime, float]]:
    times = (batch.started, batch.ended)
    return [(time, max(0.0, (time - since).total_seconds())) for time in times]


def _left_none(batch: FinishedBatch, most: int) -> bool:
    most = batch.limit or most
    return all(end - first < most for rows in batch.ranges.values() for first, end in rows.values())


def bins(
    batches: Sequence[FinishedBatch], begin: datetime, end: datetime, count: int, weight: float
) -> tuple[list[TimeBin], float]:
    """Return the period in so many equal parts, and the seconds of each."""
    width = max((end - begin) / count, timedelta(seconds=1))
    found = [TimeBin(begin + number * width) for number in range(count)]
    for batch in batches:
        one = found[min(max(0, (batch.ended - begin) // width), count - 1)]
        one.read += weight * batch.read
        one.seconds.append(batch.seconds)
        for reason, rows in rejected(batch).items():
            one.rejected[reason] = one.rejected.get(reason, 0) + weight * rows
    return found, width.total_seconds()


def rejected(batch: FinishedBatch) -> Mapping[str, int]:
    """Return the rows of a batch that are in no output, by reason."""
    kept_out = {reason: rows for reason, rows in batch.rejected.items() if rows}
    others = {LATE: batch.late, WITHOUT_TIME: batch.without_time}
    return kept_out | {reason: rows for reason, rows in others.items() if rows}


def reasons(found: Sequence[TimeBin], most: int) -> list[str]:
    """Return the reasons with the most rows, most first, then by name."""
    sums: dict[str, float] = {}
    for one in found:
        for reason, rows in one.rejected.items():
            sums[reason] = sums.get(reason, 0) + rows
    return sorted(sums, key=lambda reason: (-sums[reason], reason))[:most]


def grouped(one: TimeBin, known: Sequence[str], others: str) -> Mapping[str, float]:
    """Return the rejected rows of a part by those reasons that are known, and the others."""
    found: dict[str, float] = {}
    for reason, rows in one.rejected.items():
        name = reason if reason in known else others
        found[name] = found.get(name, 0) + rows
    return found
