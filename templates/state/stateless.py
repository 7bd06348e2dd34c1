"""What the job remembers between batches besides offsets: nothing."""

from collections.abc import Mapping
from typing import Any

from .conf import Conf
from .positions import Positions
from .resume import LOST_CHECKPOINT

CONFS = (
    Conf(
        "spark.sql.streaming.minBatchesToRetain",
        "5",
        "recovery reads the last two entries of both logs; more only costs Cypress nodes",
    ),
)


def verify(*_: object) -> None:
    """Nothing in the checkpoint but offsets, and those are looked at by recovery."""


def without_checkpoint(_positions: Positions) -> str:
    """What a start means whose checkpoint is gone."""
    return LOST_CHECKPOINT


def remarks(_progress: Mapping[str, Any]) -> list[str]:
    """Nothing to say of a batch: there is no state that could grow, no row that comes too late."""
    return []
