"""The cluster's clock: wall time plus an offset that a test may move forward."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class Clock:
    """Seconds since the epoch and YT's 64-bit timestamps, both from one source."""

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset
        self._last_timestamp = 0

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return time.time() + self.offset

    def advance(self, seconds: float) -> None:
        """Move the clock forward by `seconds`, which may not be negative: time never goes back."""
        if seconds < 0:
            raise ValueError("the clock cannot be turned back")
        self.offset += seconds

    def timestamp(self) -> int:
        """Return a strictly growing 64-bit timestamp: seconds above, a counter in the low 30 bits.

        The layout is that of YT's timestamp provider, documented under "timestamps".
        """
        self._last_timestamp = max(self._last_timestamp + 1, int(self.now()) << 30)
        return self._last_timestamp

    def after(self, timestamp: int) -> None:
        """Make every later timestamp greater than `timestamp`; for a state that was loaded."""
        self._last_timestamp = max(self._last_timestamp, timestamp)

    @property
    def last_timestamp(self) -> int:
        return self._last_timestamp


class Period:
    """Says once in so many seconds that something is due.

    A loaded state may have set the clock back, which counts as due.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._looked = 0.0

    def is_over(self) -> bool:
        """Return whether it is due; then the next period has begun."""
        now = self._clock.now()
        if self._looked <= now < self._looked + self._seconds:
            return False
        self._looked = now
        return True


def iso(seconds: float) -> str:
    """Return UTC with exactly six fractional digits and `Z`, as SPYT's file system demands."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
