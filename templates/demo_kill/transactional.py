"""Where the driver is killed: in the gap between Spark's commit log and the tablet transaction."""

from __future__ import annotations

from typing import Any

PLACE = "after Spark wrote commits/1 and before the batch's transaction committed"


def arm(faults: Any, *, output: str, pgid: int, writes_per_batch: int) -> Any:
    """Kill the process group when the second batch moves the consumer, which SPYT does in the
    batch's transaction after Spark has written ``commits/1`` and just before the commit.

    Returns the rule, whose hits can be waited for.
    """
    del output, writes_per_batch
    return faults.add(method="AdvanceConsumer", when="before", skip=1, action="kill", pgid=pgid)
