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
from ..job import Job
from ..recovery import spark_logs

#: A batch that leaves out no more rows than this never ends the job, whatever part they are.
FEW = 20
_CLOCK = re.compile(r"\b(current_|localtimestamp|curdate|unix_timestamp)", re.IGNORECASE)


@dataclass(frozen=True)
class SkippedRows:
    """How many rows of one micro-batch were rejected or late."""

    #: Reason -> rows. None: not counted, since Spark has found that no row can come out at all.
    rejected: Mapping[str, int] | None = field(default_factory=dict)
    late: int = 0
    #: Rows without an event time, and how many of them are in no output.
    without_time: int = 0
    dropped_without_time: int = 0
    #: The watermark that they lay behind and the time of the newest of them, in milliseconds since
    #: 1970; None: not known.
    watermark: int | None = None
    newest: int | None = None

    @property
    def count(self) -> int:
        """How many rows these are."""
        return sum((self.rejected or {}).values()) + self.late + self.dropped_without_time


def rejected(figures: Sequence[Any] | None, job: Job) -> dict[str, int] | None:
    """Return reason -> rows, out of what REJECT has observed; None if it has observed nothing."""
    if not job.reject:
        return {}
    if figures is None:
        return None
    return {reason: int(count) for reason, count in zip(job.reject, figures, strict=False)}


def verify_limit(found: SkippedRows, read: int, limit: float, job: Job) -> None:
    """Raise JobError when more of the ``read`` rows are skipped than the part ``limit``.

    That is a producer, or a clock, that has changed, not a bad row.
    """
    count = min(found.count, read)
    # A quotient, as `part` below: 0.29 * 100 is less than 29.
    if count <= FEW or count / read <= limit:
        return
    reasons = {reason: n for reason, n in (found.rejected or {}).items() if n}
    told = [f"{n} {reason}" for reason, n in reasons.items()]
    told += [f"{found.late} behind the watermark{_lag(found)}"] if found.late else []
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
    if found.late:
        remedies.append(
            "widen the watermark in transform.py, and `rewind`: these rows stay late otherwise"
        )
    part = -(-100 * count // read) / 100
    remedies.append(f"reject_limit = {part:g} in the configuration lets this batch pass as it is")
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
