"""A time of waiting: a line now and then says for what."""

import math
from dataclasses import dataclass

from ..errors import OutageError
from ..log import warn


@dataclass
class OutageLog:
    """When a wait began, the number of attempts, and the last error."""

    since: float
    count: int = 0
    _error: OutageError | None = None
    _said: float = -math.inf

    def tell(self, error: OutageError, now: float) -> None:
        """Count a try, and say what is waited for if it is another thing or time has passed."""
        self.count += 1
        if self._error is None or self._error.waits_for != error.waits_for:
            self._said = -math.inf
        self._error = error
        self.remind(now)

    def remind(self, now: float) -> None:
        """Say the last error again when its time has passed."""
        error = self._error
        if error is None or now - self._said < error.reminder_seconds:
            return
        warn(f"waiting for {error.waits_for} for {now - self.since:.0f} s now: {error}")
        self._said = now
