"""The worst request at which to kill the driver, by guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ytstream.job import JobContext
from ytstream.settings.job_settings import Settings

_WRITERS = 2
"""Tasks that write at the same time, on the two cores of the demonstration."""


def arm(faults: Any, context: JobContext, *, pgid: int) -> Mapping[str, Any]:
    """Kill the process group at the worst request.

    Returns the rules, whose hits can be read, by their place in words; the first one that is
    reached kills.
    """
    job, settings = context.job, context.settings
    if job.guarantee == "transactional":
        return {
            "after Spark wrote commits/1, before the batch's transaction committed": (
                _at_the_commit(faults, settings, pgid)
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


def first_batch(faults: Any, settings: Settings) -> Any:
    """Return a rule that is hit once the first batch's head is written.

    The first start writes the head twice before: it raises the epoch, and begins.
    """
    return faults.add(
        method="ModifyRows",
        where={"path": settings.ledger},
        skip=2,
        when="after",
        action="delay",
        seconds=0,
    )


def _at_the_commit(faults: Any, settings: Settings, pgid: int) -> Any:
    """Kill at the commit of the second batch's transaction.

    SPYT commits it after Spark has written ``commits/1`` (MicroBatchExecutionDecorators.runBatch),
    and the next commit after the head was written is that one.
    """
    head = faults.add(
        method="ModifyRows",
        where={"path": settings.ledger},
        armed_by=first_batch(faults, settings),
        action="delay",
        seconds=0,
    )
    return faults.add(method="CommitTransaction", armed_by=head, action="kill", pgid=pgid)


def _in_second_batch(faults: Any, settings: Settings, path: str, skip: int, pgid: int) -> Any:
    """Kill in the second batch, at a write into the table ``path`` that comes after ``skip`` more.

    Each task waits for its write, a transaction of its own, before the next one: with one write
    more under way than there are writers, the first is committed.
    """
    return faults.add(
        method="ModifyRows",
        where={"path": path},
        armed_by=first_batch(faults, settings),
        skip=skip,
        action="kill",
        pgid=pgid,
    )
