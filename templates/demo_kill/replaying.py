"""Where the driver is killed: between two writes of one micro-batch."""

from __future__ import annotations

from typing import Any

PLACE = "between two writes of one micro-batch"


def arm(faults: Any, *, output: str, pgid: int, writes_per_batch: int) -> Any:
    """Kill the process group in the second batch, when its first write is in the output.

    SPYT sends one ``modify_rows`` at a time, each in a transaction of its own, so the writes before
    the one that is stopped are committed. Returns the rule, whose hits can be waited for.
    """
    return faults.add(
        method="ModifyRows",
        where={"path": output},
        when="before",
        skip=writes_per_batch + 1,
        action="kill",
        pgid=pgid,
    )
