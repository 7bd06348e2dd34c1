"""Where the driver is killed: between two writes of one micro-batch."""

from __future__ import annotations

from typing import Any

PLACE = "between two writes of one micro-batch"
#: Tasks that write at the same time, on the two cores of the demonstration.
_WRITERS = 2


def arm(faults: Any, settings: Any, *, pgid: int) -> Any:
    """Kill the process group in the second batch, when at least one of its writes is in the output.

    Each task waits for its write, a transaction of its own, before the next one: with one write
    more under way than there are writers, the first is committed. Returns the rule, whose hits can
    be read.
    """
    first_batch_is_done = faults.add(
        method="MoveNode",
        where={"destination_path": f"{settings.checkpoint}/commits/0"},
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
