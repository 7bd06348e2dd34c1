"""How fast a job reads what arrives: measured from its status before `why` gives advice."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median

from ytstream.ledger.ledger_rows import BatchTimes
from ytstream.settings.job_settings import Settings

from ..status.job_status import FinishedBatch, JobStatus, PartitionStatus

_MOST = 0.5
"""Batches of which this part, or more, are cut, are cut as a rule."""
_BUSY_SHARE = 0.7
"""A job whose batches take this part of the time, or more, has no time left."""
_GOAL_SHARE = 0.8
"""How much of the time a larger batch may take."""


@dataclass(frozen=True)
class Backlog:
    """Rows that wait longer than a batch explains, and the pace of the last batches."""

    rows: int
    seconds: float | None
    """How long the first one has waited; None: not known."""
    arriving: float | None
    """Rows per second that were written since the first of them; None: not known."""
    reading: float
    """Rows per second of the last batches, pauses included."""
    batch_seconds: float
    """A batch takes this long, and the next one begins so long after its beginning."""
    every_seconds: float
    cut_share: float
    """The part of the last batches that read as many rows of a tablet as a batch may."""
    limit: int
    """The most rows of a tablet that a batch may read."""
    is_paced: bool
    """Whether `batch_seconds` has chosen the limit, and not `max_rows_per_partition`."""
    largest: PartitionStatus
    """The tablet with most of the waiting rows, and whether it has most of all."""
    is_in_one_tablet: bool
    tablets: int
    times: BatchTimes | None = None
    """How long the parts of a batch take; None: an older version wrote the last batches."""

    @property
    def is_cut(self) -> bool:
        """Whether most batches end at the limit, and not because they have read every row."""
        return self.cut_share >= _MOST

    @property
    def busy_share(self) -> float:
        """The part of the time in which a batch is under way."""
        return min(1.0, self.batch_seconds / self.every_seconds) if self.every_seconds else 1.0

    @property
    def is_busy(self) -> bool:
        """Whether batches leave no pause that is worth using."""
        return self.busy_share >= _BUSY_SHARE

    @property
    def larger_limit(self) -> int:
        """A limit with which batches would fill the time, rounded to two digits."""
        wanted = self.limit * _GOAL_SHARE / max(self.busy_share, 0.01)
        return int(float(f"{wanted:.2g}"))


def backlog_of(status: JobStatus, settings: Settings) -> Backlog | None:
    """Return the backlog; None if the rows that wait are those of the next batch or two."""
    batches = _of_this_epoch(status)
    if not status.lag or len(batches) < 2:
        return None
    every = median((b.started - a.started).total_seconds() for a, b in pairwise(batches))
    took = median(batch.seconds for batch in batches)
    seconds, rows = status.lag_seconds, sum(batch.read for batch in batches)
    is_usual = (
        status.lag <= 2 * rows / len(batches) if seconds is None else seconds <= 2 * (every + took)
    )
    if is_usual:
        return None
    largest = max(status.partitions, key=lambda one: one.lag)
    period = (batches[-1].ended - batches[0].started).total_seconds()
    last = batches[-1].limit
    return Backlog(
        rows=status.lag,
        seconds=seconds,
        arriving=_arriving(status.partitions),
        reading=rows / period if period > 0 else 0.0,
        batch_seconds=took,
        every_seconds=every,
        cut_share=sum(_is_cut(one, settings) for one in batches) / len(batches),
        limit=last or settings.max_rows_per_partition,
        is_paced=last > 0,
        largest=largest,
        is_in_one_tablet=status.is_in_one_tablet,
        tablets=len(status.partitions),
        times=_times(batches),
    )


def _times(batches: Sequence[FinishedBatch]) -> BatchTimes | None:
    known = [asdict(one.times) for one in batches if one.times is not None]
    if len(known) < len(batches):
        return None
    # The first batch of a process does not know of a commit.
    columns = {
        name: [one[name] for one in known if one[name] or name != "commit"] for name in known[0]
    }
    return BatchTimes(**{name: round(median(found or [0])) for name, found in columns.items()})


def _of_this_epoch(status: JobStatus) -> Sequence[FinishedBatch]:
    """Return the recent batches of the query that runs: a pause before it says nothing."""
    head = status.head
    return [one for one in status.recent if head is not None and one.epoch == head.epoch]


def _is_cut(batch: FinishedBatch, settings: Settings) -> bool:
    limit = batch.limit or settings.max_rows_per_partition
    ranges: Sequence[Mapping[int, tuple[int, int]]] = [*batch.ranges.values()]
    return any(end - first >= limit for rows in ranges for first, end in rows.values())


def _arriving(partitions: Sequence[PartitionStatus]) -> float | None:
    """Return how many rows per second came since the first of those that wait, tablet by tablet."""
    late = [one for one in partitions if one.lag]
    if any(one.seconds is None for one in late):
        return None
    return sum(one.lag / max(one.seconds or 0.0, 1.0) for one in late)
