"""Where the driver is killed: in the gap between Spark's commit log and the tablet transaction."""

from __future__ import annotations

from typing import Any

PLACE = "after Spark wrote commits/1, before the batch's transaction committed"


def arm(faults: Any, settings: Any, *, pgid: int) -> Any:
    """Kill the process group as soon as ``commits/1`` has its name.

    Spark writes a log entry under a temporary name and moves it; SPYT commits the batch's
    transaction after that (MicroBatchExecutionDecorators.runBatch). Returns the rule, whose hits
    can be read.
    """
    return faults.add(
        method="MoveNode",
        where={"destination_path": f"{settings.checkpoint}/commits/1"},
        when="after",
        action="kill",
        pgid=pgid,
    )
