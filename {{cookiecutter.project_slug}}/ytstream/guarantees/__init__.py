"""The delivery guarantees: one class in one file each, chosen by one word of job.py."""

from collections.abc import Mapping

from ..errors import JobError
from ..job import Guarantee, Job
from .at_least_once import AtLeastOnce
from .idempotent import Idempotent
from .transactional import Transactional

GUARANTEES: Mapping[str, Guarantee] = {
    guarantee.name: guarantee for guarantee in (Transactional(), Idempotent(), AtLeastOnce())
}

#: Why an upsert by position is not exactly once for the other kinds of processing.
_NOT_IDEMPOTENT = {
    "window": "a window is made of many queue rows, so no one position can be its key",
    "join": "the reference may change between a write and its replay, and the row with it",
    "deduplicate": "which of several rows is kept depends on state, so a replay may keep another",
    "aggregate": "a total is made of many queue rows, so no one position can be its key",
    "sessions": "a session is made of many queue rows, so no one position can be its key",
}


def guarantee_of(job: Job) -> Guarantee:
    """Return the guarantee that job.py names. Raises JobError for one that does not fit."""
    guarantee = GUARANTEES.get(job.guarantee)
    if guarantee is None:
        raise JobError(
            f"job.py: unknown guarantee {job.guarantee!r}", f"use one of {', '.join(GUARANTEES)}"
        )
    if guarantee.name == Idempotent.name and job.processing in _NOT_IDEMPOTENT:
        raise JobError(
            f"guarantee idempotent goes with processing map only, not with {job.processing}: "
            f"{_NOT_IDEMPOTENT[job.processing]}",
            'set guarantee="transactional" in job.py: it is exactly once for every processing',
        )
    return guarantee
