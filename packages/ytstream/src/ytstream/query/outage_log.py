"""A time without the cluster: a line a minute."""

import math
from dataclasses import dataclass

from ..log import warn

_LINE_SECONDS = 60.0


@dataclass
class OutageLog:
    """When an outage began, the number of attempts, and the last message."""

    since: float
    count: int = 0
    _error: str = ""
    _said: float = -math.inf

    def tell(self, error: str, now: float) -> None:
        """Count a try, and say a line a minute."""
        self.count += 1
        self._error = error
        self.remind(now)

    def remind(self, now: float) -> None:
        """Say the last error again when a minute has passed."""
        if now - self._said >= _LINE_SECONDS:
            warn(f"waiting for the cluster for {now - self.since:.0f} s now: {self._error}")
            self._said = now
