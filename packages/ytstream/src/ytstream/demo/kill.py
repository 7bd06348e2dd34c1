"""The worst request at which to kill the driver, by guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..config import Settings
from ..job import Connection
from ..recovery.folder import path_of

#: Tasks that write at the same time, on the two cores of the demonstration.
_WRITERS = 2


def arm(faults: Any, connection: Connection, *, pgid: int) -> Mapping[str, Any]:
    """Kill the process group at the worst request.

    Returns the rules, whose hits can be read, by their place in words; the first one that is
    reached kills.
    """
    job, settings = connection.job, connection.settings
    if job.guarantee == "transactional":
        return {
            "after Spark wrote commits/1, before the batch's transaction committed": (
                _between_the_logs(faults, settings, pgid)
            )
        }
    in_ledger = _in_second_batch(faults, settings, settings.ledger, 0, pgid)
    if "output" in job.static:
        return {"after a micro-batch's table was written, before the ledger named it": in_ledger}
    return {
        "between two writes of one micro-batch": (
            _in_second_batch(faults, settings, settings.output, _WRITERS, pgid)
        ),
        # Few rows come out of some batches, such as none of a window of a day.
        "after a micro-batch's outputs, before the ledger": in_ledger,
    }


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


def _in_second_batch(faults: Any, settings: Settings, path: str, skip: int, pgid: int) -> Any:
    """Kill in the second batch, at a write into the table ``path`` that comes after ``skip`` more.

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
        where={"path": path},
        armed_by=first_batch_is_done,
        skip=skip,
        action="kill",
        pgid=pgid,
    )
