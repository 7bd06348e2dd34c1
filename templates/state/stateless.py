"""What the job remembers between batches besides offsets: nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

CONFS: Mapping[str, str] = {
    # Recovery reads the last two entries of both logs; more only costs Cypress nodes.
    "spark.sql.streaming.minBatchesToRetain": "5",
}

#: Parts of messages that tell of a state that does not fit.
FAILURES: Sequence[str] = ()


def verify(*_: object) -> None:
    """Nothing in the checkpoint but offsets, and those are looked at by recovery."""


def without_checkpoint(*_: object) -> str:
    """What a start means whose checkpoint is gone."""
    return "going on from the consumer, which follows at most one micro-batch behind"


def remarks(_progress: Mapping[str, Any]) -> list[str]:
    """Nothing to say of a batch: there is no state that could grow, no row that comes too late."""
    return []
