"""Operations and jobs as the API shows them (native/client_operation_info_impl.cpp)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.clock import iso
from ..core.errors import NO_SUCH_ATTRIBUTE, YtError
from .model import ABORTED, COMPLETED, FAILED, FINAL, RUNNING, VANILLA, WAITING, Job, Operation
from .scheduler import USER

POOL, TREE = "default", "default"
OK = {"code": 0, "message": "", "attributes": {}, "inner_errors": []}


def operation_shown(
    operation: Operation, attributes: Iterable[str] | None, now: float
) -> dict[str, Any]:
    """Return the wanted attributes of an operation, all without a wish. Raises YtError."""
    wanted = list(OPERATION) if attributes is None else list(attributes)
    for name in wanted:
        if name not in OPERATION:
            message = f'Operation attribute "{name}" is not supported'
            raise YtError(NO_SUCH_ATTRIBUTE, message, {"attribute_name": name})
    found = {name: OPERATION[name](operation, now) for name in wanted}
    return {name: value for name, value in found.items() if value is not None}


def job_shown(job: Job, stderr: bytes) -> dict[str, Any]:
    """Return a job as get_job and list_jobs show it; what does not apply is left out."""
    found = {
        "id": job.id,
        "job_id": job.id,
        "operation_id": job.operation_id,
        "type": VANILLA,
        "state": job.state,
        "controller_state": job.state,
        "address": job.address,
        "task_name": job.task,
        "job_cookie": job.cookie,
        "start_time": iso(job.started or job.created),
        "finish_time": iso(job.finished) if job.finished is not None else None,
        "progress": 1.0 if job.state == COMPLETED else 0.0,
        "stderr_size": len(stderr) or None,
        "has_spec": True,
        "is_stale": False,
        "error": job.error,
        "pool": POOL,
        "pool_tree": TREE,
        "exec_attributes": {},
        "brief_statistics": {},
        "abort_reason": job.abort_reason,
    }
    return {name: value for name, value in found.items() if value is not None}


def state_counts(jobs: Iterable[Job]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for job in jobs:
        counts[job.state] = counts.get(job.state, 0) + 1
    return counts


def _counter(operation: Operation, task: str | None = None) -> dict[str, int]:
    """Return the numbers of jobs by state; a job counts once for each of its attempts."""
    waiting = 0 if operation.is_final else operation.count(WAITING, task)
    tasks = [operation.tasks[task]] if task else list(operation.tasks.values())
    return {
        "total": sum(each.job_count for each in tasks),
        "pending": waiting,
        "running": operation.count(RUNNING, task),
        "completed": operation.count(COMPLETED, task),
        "failed": operation.count(FAILED, task),
        "aborted": operation.count(ABORTED, task),
        "lost": 0,
        "suspended": 0,
        "invalidated": 0,
        "uncategorized": 0,
        "blocked": 0,
    }


def _detailed(counter: dict[str, int]) -> dict[str, Any]:
    """Return a counter as `progress` has it: some numbers are maps there."""
    aborted = {"total": counter["aborted"], "scheduled": counter["aborted"], "non_scheduled": 0}
    completed = {"total": counter["completed"], "non-interrupted": counter["completed"]}
    return {**counter, "aborted": aborted, "completed": completed}


def _progress(operation: Operation, now: float) -> dict[str, Any]:
    whole = _detailed(_counter(operation))
    tasks = [
        {
            "task_name": name,
            "job_type": VANILLA,
            "job_counter": _detailed(_counter(operation, name)),
        }
        for name in operation.tasks
    ]
    return {
        "jobs": whole,
        "total_job_counter": whole,
        "tasks": tasks,
        "build_time": iso(now),
        "job_statistics": {},
    }


def _runtime(operation: Operation) -> dict[str, Any]:
    spec = operation.spec
    scheduling = {"pool": spec.get("pool", POOL), "weight": float(spec.get("weight", 1.0))}
    return {
        "acl": spec.get("acl", []),
        "owners": [USER],
        "scheduling_options_per_pool_tree": {TREE: scheduling},
        **operation.parameters,
        "annotations": operation.annotations,
    }


def _brief(operation: Operation) -> dict[str, Any]:
    names = (
        *("title", "alias", "pool", "pool_trees", "description"),
        *("input_table_paths", "output_table_path"),
    )
    return {name: operation.spec[name] for name in names if name in operation.spec}


OPERATION: dict[str, Callable[[Operation, float], Any]] = {
    "id": lambda operation, _: operation.id,
    "state": lambda operation, _: operation.state,
    "type": lambda operation, _: operation.type,
    "operation_type": lambda operation, _: operation.type,
    "authenticated_user": lambda *_: USER,
    "start_time": lambda operation, _: iso(operation.started),
    "finish_time": lambda operation, _: (
        iso(operation.finished) if operation.finished is not None else None
    ),
    "brief_spec": lambda operation, _: _brief(operation),
    "spec": lambda operation, _: operation.spec,
    "provided_spec": lambda operation, _: operation.spec,
    "full_spec": lambda operation, _: operation.spec,
    "unrecognized_spec": lambda operation, _: operation.unrecognized,
    "brief_progress": lambda operation, now: {
        "jobs": _counter(operation),
        "build_time": iso(now),
    },
    "progress": _progress,
    "runtime_parameters": lambda operation, _: _runtime(operation),
    "suspended": lambda *_: False,
    "events": lambda operation, _: [
        {"time": iso(time), "state": state, "attributes": {}} for time, state in operation.events
    ],
    "result": lambda operation, _: (
        {"error": operation.error or OK} if operation.state in FINAL else None
    ),
    "alerts": lambda *_: {},
    "alert_events": lambda *_: [],
    "slot_index_per_pool_tree": lambda *_: {TREE: 0},
    "scheduling_attributes_per_pool_tree": lambda *_: {TREE: {}},
    "task_names": lambda operation, _: list(operation.tasks),
    "experiment_assignments": lambda *_: [],
    "experiment_assignment_names": lambda *_: [],
    "controller_features": lambda *_: {},
    "memory_usage": lambda *_: 0,
}
"""Attribute -> its value at a time; None leaves it out."""
