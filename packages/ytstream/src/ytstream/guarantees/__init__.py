"""The delivery guarantees: one class in one file each, chosen by one word of job.py."""

from collections.abc import Mapping

from ..declaration.compatibility import problem
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import Guarantee, Job
from .at_least_once import AtLeastOnce
from .idempotent import Idempotent
from .transactional import Transactional

GUARANTEES: Mapping[str, Guarantee] = {
    guarantee.name: guarantee for guarantee in (Transactional(), Idempotent(), AtLeastOnce())
}


def guarantee_of(job: Job) -> Guarantee:
    """Return the guarantee that job.py names. Raises JobError for one that does not fit."""
    guarantee = GUARANTEES.get(job.guarantee)
    if guarantee is None:
        raise JobError(
            f"job.py: unknown guarantee {job.guarantee!r}",
            f"use one of {', '.join(GUARANTEES)}",
            code=ErrorCode.JOB,
        )
    if why := problem(guarantee.name, job.processing):
        raise JobError(
            why,
            'set guarantee="transactional" in job.py: it is exactly once for every processing',
            code=ErrorCode.JOB,
        )
    return guarantee
