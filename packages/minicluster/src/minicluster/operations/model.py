"""Operations, tasks and jobs as data (client/scheduler/public.h has the names of the states)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..cypress.files import File
from ..tables.static import Written

RUNNING = "running"
WAITING = "waiting"
COMPLETED = "completed"
FAILED = "failed"
ABORTED = "aborted"
FINAL = frozenset({COMPLETED, FAILED, ABORTED})
"""States that an operation or a job does not leave."""

VANILLA, MERGE, SORT = "vanilla", "merge", "sort"
TYPES = {1: MERGE, 3: SORT, 8: VANILLA}
"""By the number of EOperationType (client/scheduler/public.h)."""


@dataclass(frozen=True)
class Artifact:
    """A file of a job's sandbox: its relative name, its content as it was at the start."""

    name: str
    content: File
    executable: bool


@dataclass(frozen=True)
class Task:
    """One task of a vanilla operation, as its spec asks for it."""

    name: str
    job_count: int
    command: str
    environment: dict[str, str] = field(default_factory=dict)
    file_paths: tuple[Any, ...] = ()
    restart_completed_jobs: bool = False
    rpc_socket: bool = False
    copy_files: bool = False
    stdout_to_stderr: bool = False
    stderr_bound: int = 5 * 1024 * 1024
    time_limit: float | None = None


@dataclass(frozen=True)
class Ending:
    """How a job's process ended: `error` is none for exit code 0; `stderr` is what was kept."""

    error: dict[str, Any] | None
    stderr: bytes


@dataclass(frozen=True)
class Launch:
    """Everything that a node needs to run one job."""

    job_id: str
    task: Task
    artifacts: tuple[Artifact, ...]
    environment: dict[str, str]
    """The variables that the cluster adds: ids, indices, the vault."""


@dataclass(frozen=True)
class Work:
    """The rows of an operation on tables, as they were at its start, and where they go."""

    transaction: str
    """The operation's own: it has locked the output."""
    path: str
    written: Written


@dataclass
class Job:
    """One attempt to run one of a task's jobs. `cookie` stays, the indices are new."""

    id: str
    operation_id: str
    task: str
    cookie: int
    index: int
    task_index: int
    address: str
    created: float
    state: str = WAITING
    started: float | None = None
    finished: float | None = None
    error: dict[str, Any] | None = None
    abort_reason: str | None = None
    stderr: bytes = b""
    unheard: bool = False
    """Its node is lost: whatever the processes do, the scheduler does not hear of it."""


@dataclass
class Operation:
    """One operation. A saved state holds neither its vault nor its files."""

    id: str
    spec: dict[str, Any]
    """As it was given, without the vault."""
    unrecognized: dict[str, Any]
    tasks: dict[str, Task]
    started: float
    alias: str | None
    max_failed_jobs: int
    fail_on_job_restart: bool
    annotations: dict[str, Any]
    parameters: dict[str, Any]
    """The runtime parameters but for the annotations."""
    type: str = VANILLA
    work: Work | None = None
    """What an operation on tables has still to do."""
    vault: dict[str, Any] = field(repr=False, default_factory=dict)
    artifacts: dict[str, tuple[Artifact, ...]] = field(repr=False, default_factory=dict)
    state: str = "starting"
    finished: float | None = None
    error: dict[str, Any] | None = None
    events: list[tuple[float, str]] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    task_indices: Counter[str] = field(default_factory=Counter)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"vault": {}, "artifacts": {}}

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    def count(self, state: str, task: str | None = None) -> int:
        return sum(job.state == state and task in (None, job.task) for job in self.jobs.values())

    def running(self) -> list[Job]:
        """Return the jobs that are not over."""
        return [job for job in self.jobs.values() if job.state not in FINAL]
