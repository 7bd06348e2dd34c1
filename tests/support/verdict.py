"""The verdict of a case: one word, and what the tables say of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HELD, FAILED, MISSED, STALLED, ENDED = "held", "failed", "missed", "stalled", "ended"
VERDICTS = (HELD, FAILED, MISSED, STALLED, ENDED)
NOT_HELD = (FAILED, STALLED, ENDED)
"""What counts against a job."""


@dataclass(frozen=True)
class Verdict:
    """What the tables say of one history, over all outputs."""

    lost: int = 0
    """Expected rows that are in no table, although the queue was read to its end."""
    waiting: int = 0
    """Expected rows that are in no table, and still in the queue."""
    repeated: int = 0
    """Rows that are there more often than expected, or are not expected at all."""
    wrong: int = 0
    """Of these, the ones that are not expected at all: no guarantee allows them."""
    examples: tuple[str, ...] = ()
    """The first rows of both kinds."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows of each output that the tables hold."""

    def holds(self, *, may_repeat: bool) -> bool:
        """Return whether the tables are what the guarantee promises."""
        return not (self.lost or self.wrong) and (may_repeat or not self.repeated)


EXACT = Verdict()
