"""The worst request at which to kill the driver, by guarantee."""

from __future__ import annotations

from typing import Any

from ..config import Settings
from ..recovery.folder import path_of

#: Tasks that write at the same time, on the two cores of the demonstration.
_WRITERS = 2


def place(guarantee: str) -> str:
    """Return the place in words."""
    if guarantee == "transactional":
        return "after Spark wrote commits/1, before the batch's transaction committed"
    return "between two writes of one micro-batch"


def arm(faults: Any, settings: Settings, guarantee: str, *, pgid: int) -> Any:
    """Kill the process group at the worst request. Returns the rule, whose hits can be read."""
    if guarantee == "transactional":
        return _between_the_logs(faults, settings, pgid)
    return _between_two_writes(faults, settings, pgid)


def _between_the_logs(faults: Any, settings: Settings, pgid: int) -> Any:
    """Kill as soon as ``commits/1`` has its name.

    Spark writes a log entry under a temporary name and moves it; SPYT commits the batch's
    transaction after that (MicroBatchExecutionDecorators.runBatch).
    """
    return faults.add(
        method="MoveNode",
        where={"destination_path": f"{path_of(settings, 1)}/commits/1"},
        when="after",
        action="kill",
        pgid=pgid,
    )


def _between_two_writes(faults: Any, settings: Settings, pgid: int) -> Any:
    """Kill in the second batch, when at least one of its writes is in the output.

    Each task waits for its write, a transaction of its own, before the next one: with one write
    more under way than there are writers, the first is committed.
    """
    first_batch_is_done = faults.add(
        method="MoveNode",
        where={"destination_path": f"{path_of(settings, 1)}/commits/0"},
        when="after",
        action="delay",
        seconds=0,
    )
    return faults.add(
        method="ModifyRows",
        where={"path": settings.output},
        armed_by=first_batch_is_done,
        skip=_WRITERS,
        action="kill",
        pgid=pgid,
    )
