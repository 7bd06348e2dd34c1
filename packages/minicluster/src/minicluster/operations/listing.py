"""Which operations and jobs a list holds, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..core.clock import iso
from ..core.errors import not_supported
from .model import FAILED, Job, Operation
from .scheduler import USER

SORT: dict[str, Callable[[Job], Any]] = {
    "none": lambda job: 0,
    "type": lambda job: 0,
    "state": lambda job: job.state,
    "start_time": lambda job: job.started or job.created,
    "finish_time": lambda job: job.finished or 0.0,
    "address": lambda job: job.address,
    "duration": lambda job: (job.finished or 0.0) - (job.started or job.created),
    "id": lambda job: job.id,
    "task_name": lambda job: job.task,
}
"""Sort fields of list_jobs."""


def operations_listed(
    operations: Iterable[Operation],
    *,
    user: str | None = None,
    state: str | None = None,
    type: str | None = None,
    filter: str | None = None,
    with_failed_jobs: bool | None = None,
    from_time: str | None = None,
    to_time: str | None = None,
    cursor_time: str | None = None,
    cursor_direction: str = "past",
) -> list[Operation]:
    """Return the operations that fit, the latest first."""
    past = cursor_direction == "past"

    def fits(operation: Operation) -> bool:
        started = iso(operation.started)
        beyond = cursor_time is not None and (
            started > cursor_time if past else started <= cursor_time
        )
        failed = operation.count(FAILED) > 0
        return (
            user in (None, USER)
            and type in (None, operation.type)
            and state in (None, operation.state)
            and (filter is None or filter.lower() in _words(operation))
            and (with_failed_jobs is None or with_failed_jobs == failed)
            and (from_time is None or started > from_time)
            and (to_time is None or started <= to_time)
            and not beyond
        )

    found = [operation for operation in operations if fits(operation)]
    return sorted(found, key=lambda operation: operation.started, reverse=True)


def counts(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the counters that list_operations adds."""
    listed = list(operations)
    return {
        "state_counts": dict(Counter(operation.state for operation in listed)),
        "type_counts": dict(Counter(operation.type for operation in listed)),
        "user_counts": {USER: len(listed)} if listed else {},
        "pool_tree_counts": {},
        "pool_counts": {},
        "failed_jobs_count": sum(operation.count(FAILED) > 0 for operation in listed),
    }


def jobs_listed(
    jobs: Iterable[Job],
    *,
    state: str | None = None,
    address: str | None = None,
    task_name: str | None = None,
    sort_field: str = "none",
    descending: bool = False,
) -> list[Job]:
    """Return the jobs that fit. Raises YtError for a sort field that is not here."""
    if sort_field not in SORT:
        raise not_supported(f"list_jobs sorted by {sort_field}")
    found = [
        job
        for job in jobs
        if state in (None, job.state)
        and (address is None or address in job.address)
        and task_name in (None, job.task)
    ]
    return sorted(found, key=SORT[sort_field], reverse=descending)


def _words(operation: Operation) -> str:
    """Return the text that the filter of list_operations is looked for in."""
    spec = operation.spec
    parts = (
        operation.id,
        spec.get("title"),
        operation.alias,
        operation.state,
        USER,
        operation.type,
    )
    return " ".join(str(part).lower() for part in parts if part)
