"""How long the parts of a batch take."""

import time
from dataclasses import dataclass, field


@dataclass
class Stopwatch:
    """Runs from its making on."""

    _since: float = field(default_factory=time.monotonic)

    def lap(self) -> int:
        """Return the milliseconds since the last call."""
        before, self._since = self._since, time.monotonic()
        return round(1000 * (self._since - before))
