"""The rows of a micro-batch that are in no finished row: how many they are, and how many may be.

REJECT keeps out some. Spark itself leaves out those behind the watermark: see late_rows.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import LATE, Job
from ..recovery import spark_logs

FEW = 20
"""A batch that leaves out no more rows than this never ends the job, whatever part they are."""
_CLOCK = re.compile(r"\b(current_|localtimestamp|curdate|unix_timestamp)", re.IGNORECASE)


@dataclass(frozen=True)
class SkippedRows:
    """How many rows of one micro-batch were rejected or late."""

    rejected: Mapping[str, int] | None = field(default_factory=dict)
    """Reason -> rows. None: not counted, since Spark has found that no row can come out at all."""
    late: int = 0
    is_late_kept: bool = False
    """Whether the late ones go to `rejected`."""
    without_time: int = 0
    """Rows without an event time, and how many of them are in no output."""
    dropped_without_time: int = 0
    watermark: int | None = None
    """The watermark that they lay behind and the time of the newest of them, in milliseconds since
    1970; None: not known."""
    newest: int | None = None
    warned: Mapping[str, int] = field(default_factory=dict)
    """Reason -> rows that WARN has counted. They are not skipped."""
    outside: Mapping[str, int] = field(default_factory=dict)
    """Reason -> rows that belong to no open period of an archive. They go to `rejected`."""

    @property
    def count(self) -> int:
        """How many rows these are for `reject_limit`; kept late ones have another limit."""
        late = 0 if self.is_late_kept else self.late
        return sum((self.rejected or {}).values()) + late + self.dropped_without_time

    @property
    def reasons(self) -> dict[str, int]:
        """Reason -> rows that go to `rejected`."""
        late = {LATE: self.late} if self.is_late_kept else {}
        return {**(self.rejected or {}), **late, **self.outside}

    @property
    def written(self) -> int:
        """How many of them go to `rejected`."""
        return sum(self.reasons.values())


def rejected(figures: Sequence[Any] | None, job: Job) -> dict[str, int] | None:
    """Return reason -> rows, out of what REJECT has observed; None if it has observed nothing."""
    if not job.reject:
        return {}
    if figures is None:
        return None
    return {reason: int(count) for reason, count in zip(job.reject, figures, strict=False)}


def warned(figures: Sequence[Any] | None, job: Job) -> dict[str, int]:
    """Return reason -> rows, out of what WARN has observed behind the counts of REJECT."""
    counts = [] if figures is None else figures[len(job.reject) :]
    return {reason: int(count) for reason, count in zip(job.warn, counts, strict=False)}


def verify_late_limit(found: SkippedRows, read: int, limit: float | None) -> None:
    """Raise JobError when more of the ``read`` rows are late, and kept, than the part ``limit``."""
    if limit is None or not found.is_late_kept or not _is_above(found.late, read, limit):
        return
    raise JobError(
        f"{found.late} of {read} rows of a micro-batch were late{_lag(found)}; late_limit allows "
        f"{limit:.0%}",
        "check the newest rows of the queues, and correct their producer; or widen the watermark "
        f"in transform.py, and `rewind`; or late_limit = {_part(found.late, read)} in the "
        "configuration lets this batch pass as it is, and keeps its late rows in `rejected`",
        code=ErrorCode.TOO_MANY_LATE,
    )


def _is_above(count: int, read: int, limit: float) -> bool:
    # A quotient, as _part() has it: 0.29 * 100 is less than 29.
    return count > FEW and count / read > limit


def _part(count: int, read: int) -> str:
    """Return the part of the rows as a limit that they do not exceed."""
    return f"{-(-100 * count // read) / 100:g}"


def verify_limit(found: SkippedRows, read: int, limit: float, job: Job) -> None:
    """Raise JobError when more of the ``read`` rows are skipped than the part ``limit``.

    That is a producer, or a clock, that has changed, not a bad row.
    """
    count = min(found.count, read)
    if not _is_above(count, read, limit):
        return
    late = 0 if found.is_late_kept else found.late
    reasons = {reason: n for reason, n in (found.rejected or {}).items() if n}
    told = [f"{n} {reason}" for reason, n in reasons.items()]
    told += [f"{late} behind the watermark{_lag(found)}"] if late else []
    told += (
        [f"{found.dropped_without_time} without an event time"]
        if found.dropped_without_time
        else []
    )
    remedies = ["check the newest rows of the queues, and correct their producer"]
    if any(_CLOCK.search(job.reject[reason]) for reason in reasons):
        remedies.append(
            f"compare this host's clock, which says {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: if "
            "it is slow, right rows look as if they came from the future"
        )
    if reasons:
        remedies.append("correct REJECT in transform.py")
    if late:
        remedies.append(
            "widen the watermark in transform.py, and `rewind`: these rows stay late otherwise"
        )
    part = _part(count, read)
    remedies.append(f"reject_limit = {part} in the configuration lets this batch pass as it is")
    raise JobError(
        f"{count} of {read} rows of a micro-batch were skipped: {', '.join(told)}; reject_limit "
        f"allows {limit:.0%}",
        "; or ".join(remedies),
        code=ErrorCode.TOO_MANY_REJECTED,
    )


def _lag(found: SkippedRows) -> str:
    """Return where the watermark is, and how far ahead of the rows and of this host's clock."""
    if found.watermark is None:
        return ""
    ahead = {
        "the newest of them": found.newest,
        "this host's clock": datetime.now(UTC).timestamp() * 1_000,
    }
    lags = [
        f"{timedelta(seconds=(found.watermark - time) // 1_000)} ahead of {what}"
        for what, time in ahead.items()
        if time is not None and found.watermark >= time + 1_000
    ]
    return f" ({', '.join([f'at {spark_logs.named(found.watermark)}', *lags])})"
