"""How fast a job reads what arrives: measured from its status before `why` gives advice."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from ytstream.ledger.ledger_rows import BatchTimes
from ytstream.settings.job_settings import OWN, Settings

from ..status.job_status import RECENT, FinishedBatch, JobStatus, PartitionStatus

_MOST = 0.5
"""Batches of which this part, or more, are cut, are cut as a rule."""
_BUSY_SHARE = 0.7
"""A job whose batches take this part of the time, or more, has no time left."""
_GOAL_SHARE = 0.8
"""How much of the time a larger batch may take."""
_SHORT_SECONDS, _LONGEST_SECONDS = 5.0, 10.0
"""A batch that takes longer than the first is not made larger for its own sake, and none longer
than the second: its transaction has to end within 20 to 30 s (query/pace.py)."""
_SMALL_SHARE = 0.5
"""A batch with this part of the usual rows, or fewer, shows what a batch takes without rows."""
_FIXED_SHARE = 0.5
"""If a batch spends this part of its time whatever it reads, or more, larger ones read faster."""
_LEAST_TIMES, _MOST_TIMES = 1.5, 10.0
"""A larger limit is so many times the one before. A task holds the rows in memory."""
_OWN = f"connector: {OWN}"
"""What a process says that runs on the job's own connector (choose_connector.line)."""
_LAST_SECONDS, _LEAST_BATCHES = 30.0, 3
"""The figures are of the last `RECENT` batches, and of those only of the last half minute where it
has so many: what has become slow shows within a minute."""
_TICKS = 3
"""The pauses of a job are measured over so many triggers."""


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
    trigger_seconds: float
    skips_pauses: bool = False
    """Whether the next batch begins at once after one that was cut: what is between two of them is
    the job's work, too."""
    fixed_seconds: float | None = None
    """What a batch takes whatever it reads; None: the last ones have about the same size."""
    lookups: Mapping[str, float] = field(default_factory=dict)
    """Name of a reference -> for how many seconds the tasks of a batch wait for lookups in it."""
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
        return self.busy_share >= _BUSY_SHARE or (self.is_cut and self.skips_pauses)

    @property
    def is_short(self) -> bool:
        """Whether batches could be larger, and would read more rows per second then."""
        if self.batch_seconds >= self._goal_seconds:
            return False
        fixed = self.fixed_seconds
        return fixed is None or fixed >= _FIXED_SHARE * self.batch_seconds

    @property
    def larger_limit(self) -> int:
        """A limit with which batches would fill the time, rounded to two digits."""
        if not self.is_busy:
            wanted = min(_GOAL_SHARE * self.every_seconds, _LONGEST_SECONDS)
            share = wanted / max(self.batch_seconds, 0.01)
        else:
            fixed = self.fixed_seconds or 0.0
            of_rows = max(self.batch_seconds - fixed, 0.01)
            share = min(max((self._goal_seconds - fixed) / of_rows, _LEAST_TIMES), _MOST_TIMES)
        return int(float(f"{self.limit * share:.2g}"))

    @property
    def shorter_trigger(self) -> int | None:
        """Seconds of a trigger that leaves no long pause; None if larger batches fill the pause."""
        if self.is_busy or _GOAL_SHARE * self.every_seconds <= _LONGEST_SECONDS:
            return None
        return math.ceil(self.batch_seconds / _GOAL_SHARE)

    @property
    def _goal_seconds(self) -> float:
        """What a batch may take that another one follows at once."""
        return min(_GOAL_SHARE * max(self.trigger_seconds, _SHORT_SECONDS), _LONGEST_SECONDS)


def backlog_of(status: JobStatus, settings: Settings) -> Backlog | None:
    """Return the backlog; None if the rows that wait are those of the next batch or two."""
    of_epoch, batches = _of_this_epoch(status), _latest(status)
    if not status.lag or len(batches) < 2:
        return None
    every = median((b.started - a.started).total_seconds() for a, b in pairwise(batches))
    took = median(batch.seconds for batch in batches)
    seconds, rows = status.lag_seconds, sum(batch.read for batch in batches)
    is_usual = (
        status.lag <= 2 * rows / len(batches) if seconds is None else seconds <= 2 * (every + took)
    )
    if is_usual or trigger_pause(status, settings) is not None:
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
        trigger_seconds=settings.trigger_seconds,
        skips_pauses=status.connector.startswith(_OWN),
        fixed_seconds=_fixed(of_epoch, batches),
        lookups=_lookups(batches),
        times=_times(batches),
    )


def without_batch(status: JobStatus) -> float | None:
    """Return for how long rows have waited and no batch has ended; None before the first batch.

    Where no row came, no batch was due.
    """
    waited = status.lag_seconds
    return status.age if status.age is None or waited is None else min(status.age, waited)


def usual_seconds(status: JobStatus) -> float | None:
    """Return how long the last batches of the query took; None before the first one."""
    batches = _latest(status)
    return median(one.seconds for one in batches) if batches else None


@dataclass(frozen=True)
class TriggerPause:
    """Rows that wait because the next batch is not due, while the job has time for them."""

    seconds: float
    """How long the first one has waited."""
    worked: float
    """Seconds of batches in the last ``period`` seconds."""
    period: float
    batch_seconds: float


def trigger_pause(status: JobStatus, settings: Settings) -> TriggerPause | None:
    """Return why rows wait that came since the last trigger; None if another batch is due."""
    batches, waited, trigger = _of_this_epoch(status), status.lag_seconds, settings.trigger_seconds
    if not status.lag or waited is None or not batches:
        return None
    begin = max(status.time - timedelta(seconds=_TICKS * trigger), batches[0].started)
    period = (status.time - begin).total_seconds()
    took = median(one.seconds for one in _latest(status))
    worked = sum(_seconds_since(one, begin) for one in batches)
    if worked >= (1 - _MOST) * period or waited > trigger + took:
        return None
    return TriggerPause(waited, worked, period, took)


def _seconds_since(batch: FinishedBatch, begin: datetime) -> float:
    return max(0.0, (batch.ended - max(batch.started, begin)).total_seconds())


def _fixed(batches: Sequence[FinishedBatch], latest: Sequence[FinishedBatch]) -> float | None:
    """Return what a batch takes without rows: where the line through small and usual ones begins.

    The first batch of a query makes Spark's plan, and says nothing.
    """
    read = [one for one in batches[1:] if one.read]
    many = median(one.read for one in latest)
    small = [one for one in read if one.read <= _SMALL_SHARE * many]
    if not small:
        return None
    few, fast = median(one.read for one in small), median(one.seconds for one in small)
    slow = median(one.seconds for one in latest)
    a_row = max(0.0, slow - fast) / (many - few)
    return min(max(0.0, fast - few * a_row), slow)


def _lookups(batches: Sequence[FinishedBatch]) -> Mapping[str, float]:
    names = {name for one in batches for name in one.lookups}
    return {
        name: median(
            one.lookups[name].milliseconds / 1000 if name in one.lookups else 0 for one in batches
        )
        for name in names
    }


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
    """Return the batches of the query that runs: a pause before it says nothing."""
    head = status.head
    return [one for one in status.batches if head is not None and one.epoch == head.epoch]


def _latest(status: JobStatus) -> Sequence[FinishedBatch]:
    batches = _of_this_epoch(status)[-RECENT:]
    since = status.time - timedelta(seconds=_LAST_SECONDS)
    late = [one for one in batches if one.ended >= since]
    return late if len(late) >= _LEAST_BATCHES else batches[-_LEAST_BATCHES:]


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
