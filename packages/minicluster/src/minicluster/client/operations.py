"""Operations through the control interface: what runs, and what goes wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """One attempt to run one of a task's jobs."""

    id: str
    task: str
    state: str
    """"waiting", "running", "completed", "failed" or "aborted"."""
    cookie: int
    attempt: int
    """The job's YT_TASK_JOB_INDEX."""
    address: str
    abort_reason: str | None
    error: dict[str, Any] | None


@dataclass(frozen=True)
class Operation:
    """An operation as it was when asked for."""

    id: str
    alias: str | None
    title: str | None
    state: str
    error: dict[str, Any] | None
    jobs: list[Job]

    def running(self, task: str | None = None) -> list[Job]:
        """Return its running jobs, of one task or of all."""
        return [job for job in self.jobs if job.state == "running" and task in (None, job.task)]


class Operations:
    """Operations, and faults of theirs. Each call raises what those of `Client` raise."""

    def __init__(self, request: Callable[..., Any]) -> None:
        self._request = request

    def list(self) -> list[Operation]:
        """Return all operations in the order of their starts, those that are over included."""
        return [
            Operation(**{**found, "jobs": [Job(**job) for job in found["jobs"]]})
            for found in self._request("GET", "/operations")
        ]

    def end(self, operation: str, state: str, message: str | None = None) -> None:
        """End an operation as "completed", "aborted" or "failed", as another user could."""
        given = {"operation": operation, "state": state, "message": message}
        self._request("POST", "/operations/end", given)

    def abort_job(self, job: str, reason: str = "preemption") -> None:
        """Abort a job; another attempt starts. Aborts do not count as failures."""
        self._request("POST", "/operations/abort_job", {"job": job, "reason": reason})

    def lose_node(self, job: str, *, processes: str = "stop", declared_after: float = 0.0) -> None:
        """Lose the node of a running job.

        processes: "stop" (they die now) or "continue" (they run on, beside the next attempt).
        declared_after: seconds of the cluster's clock until the scheduler notices, aborts the job
        and starts the next attempt.
        """
        given = {"job": job, "processes": processes, "declared_after": declared_after}
        self._request("POST", "/operations/lose_node", given)

    def scheduler_away(self, seconds: float) -> None:
        """Refuse requests that need the scheduler for so long; running jobs continue. 0 ends it."""
        self._request("POST", "/operations/scheduler_away", {"seconds": seconds})

    def set_start_delay(self, seconds: float) -> None:
        """Let each job wait so long before it starts; 0 is the default."""
        self._request("POST", "/operations/start_delay", {"seconds": seconds})

    def lose_file(self, path: str) -> None:
        """Remove a file, of the cache for example. Running operations have their own copy."""
        self._request("POST", "/operations/lose_file", {"path": path})
