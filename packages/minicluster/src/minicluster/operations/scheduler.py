"""The scheduler and its controllers: operations start, their jobs run, fail, start again, end.

Every call runs to its end. Processes are somebody else's: `Nodes` starts and kills them, and
reports an end by `job_ended`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from ..core import ids
from ..core.clock import Clock
from ..core.errors import (
    FAILED_JOBS_LIMIT_EXCEEDED,
    NO_SUCH_JOB,
    NO_SUCH_OPERATION,
    OPERATION_FAILED_ON_JOB_RESTART,
    OPERATION_FAILED_TO_PREPARE,
    RefusedError,
    YtError,
    generic,
    not_supported,
)
from ..cypress.commands import Cypress
from . import bulk
from . import spec as specs
from .artifacts import artifacts_of
from .bulk import Bulk
from .model import (
    ABORTED,
    COMPLETED,
    FAILED,
    RUNNING,
    VANILLA,
    WAITING,
    Ending,
    Job,
    Launch,
    Operation,
    Task,
)
from .parameters import merged, separated
from .vault import variables

USER = "root"
FIRST_PORT = 9012
"""Each job runs on a node of its own (model); a node's address is the loopback and a port."""


class Nodes(Protocol):
    """The nodes as the scheduler sees them. No call waits."""

    available: bool

    def start(self, launch: Launch) -> None:
        """Run a job; its end is reported to `Scheduler.job_ended`."""

    def kill(self, job_ids: Iterable[str]) -> None:
        """Kill every process of these jobs."""

    def stderr(self, job_id: str) -> bytes:
        """Return the kept part of a running job's stderr."""

    def clear(self) -> None:
        """Kill every process of every job there ever was."""


class NoNodes:
    """A cluster without nodes: no operation can run."""

    available = False

    def start(self, launch: Launch) -> None:
        raise AssertionError("no operation starts without nodes")

    def kill(self, job_ids: Iterable[str]) -> None:
        """Do nothing: no job runs."""

    def stderr(self, job_id: str) -> bytes:
        return b""

    def clear(self) -> None:
        """Do nothing: no job runs."""


class Scheduler:
    """All operations by id, those that are over included."""

    def __init__(self, clock: Clock, cypress: Cypress, nodes: Nodes, bulk: Bulk) -> None:
        self._clock = clock
        self._cypress = cypress
        self._bulk = bulk
        self.nodes = nodes
        self.operations: dict[str, Operation] = {}
        self.start_delay = 0.0
        """Seconds that a job waits before its node starts it; that a merge or a sort takes."""
        self._aliases: dict[str, str] = {}
        self._ports = FIRST_PORT
        self._away_until = 0.0
        self._unheard: list[tuple[str, Ending]] = []
        """Ends of jobs that came while the scheduler was away."""
        self._due: list[tuple[float, str, str]] = []
        """(time, "start" or "lost", job id), or (time, "work", operation id)."""

    # Requests

    def start(self, type: str, given: Any, *, tx: str | None = None) -> str:
        """Return the id of a new operation; its files are seen through `tx`. Raises YtError."""
        if type in bulk.TYPES:
            return self._start_bulk(type, given, tx)
        if not self.nodes.available:
            raise not_supported("operations (start_operation), start it with --operations")
        if type != VANILLA:
            raise not_supported(f'operations of type "{type}"')
        self.require()
        spec = specs.parse(given)
        if spec.alias is not None:
            self._require_free(spec.alias)
        now = self._clock.now()
        operation = Operation(
            id=ids.new(ids.OPERATION),
            spec=spec.provided,
            unrecognized=spec.unrecognized,
            tasks=spec.tasks,
            started=now,
            alias=spec.alias,
            max_failed_jobs=spec.max_failed_jobs,
            fail_on_job_restart=spec.fail_on_job_restart,
            annotations=spec.annotations,
            parameters={},
            vault=spec.vault,
        )
        self.operations[operation.id] = operation
        if operation.alias is not None:
            self._aliases[operation.alias] = operation.id
        self._enter(operation, "starting", "initializing", "preparing")
        try:
            for task in operation.tasks.values():
                operation.artifacts[task.name] = artifacts_of(self._cypress, task, tx)
        except YtError as error:
            inner = [error]
            message = "Operation has failed to prepare"
            self.fail(operation, YtError(OPERATION_FAILED_TO_PREPARE, message, {}, inner))
            return operation.id
        self._enter(operation, "materializing", RUNNING)
        for task in operation.tasks.values():
            for cookie in range(task.job_count):
                self._new_job(operation, task, cookie)
        return operation.id

    def _start_bulk(self, type: str, given: Any, tx: str | None) -> str:
        self.require()
        spec = specs.parse_of_tables(type, given)
        if spec.alias is not None:
            self._require_free(spec.alias)
        operation = Operation(
            id=ids.new(ids.OPERATION),
            spec=spec.provided,
            unrecognized=spec.unrecognized,
            tasks={},
            started=self._clock.now(),
            alias=spec.alias,
            max_failed_jobs=specs.MAX_FAILED_JOBS,
            fail_on_job_restart=False,
            annotations=spec.annotations,
            parameters={},
            type=type,
        )
        self.operations[operation.id] = operation
        if operation.alias is not None:
            self._aliases[operation.alias] = operation.id
        self._enter(operation, "starting", "initializing", "preparing")
        try:
            operation.work = self._bulk.prepare(spec, tx)
        except RefusedError:
            del self.operations[operation.id]
            raise
        except YtError as error:
            message = "Operation has failed to prepare"
            self.fail(operation, YtError(OPERATION_FAILED_TO_PREPARE, message, {}, [error]))
            return operation.id
        self._enter(operation, "materializing", RUNNING)
        self._due.append((self._clock.now() + self.start_delay, "work", operation.id))
        self.tick()
        return operation.id

    def _work(self, operation: Operation) -> None:
        """End an operation on tables, if nobody has ended it before."""
        if operation.work is None:
            return
        work, operation.work = operation.work, None
        try:
            self._bulk.finish(work)
        except YtError as error:
            self.fail(operation, error)
        else:
            self._finish(operation, "completing", COMPLETED, None)

    def find(self, operation_id: str | None, alias: str | None) -> Operation:
        """Return an operation, final ones too; by alias the latest. Raises YtError."""
        if alias is not None:
            if self.is_away:
                # The scheduler's own table of aliases is asked (ResolveOperationAlias).
                message = "Error while resolving alias from scheduler"
                raise YtError(1, message, {"operation_alias": alias}, [_unavailable()])
            if alias not in self._aliases:
                raise generic("Operation alias is unknown", alias=alias)
            return self.operations[self._aliases[alias]]
        if operation_id not in self.operations:
            raise _no_such_operation(operation_id)
        return self.operations[operation_id]

    def manage(self, operation_id: str | None, alias: str | None) -> Operation:
        """Return an operation to change: the scheduler must be there, the operation not over."""
        self.require()
        operation = self.find(operation_id, alias)
        if operation.is_final:
            # The scheduler forgets a finished operation at once.
            raise YtError(NO_SUCH_OPERATION_OF_SCHEDULER, f"No such operation {operation.id}")
        return operation

    def update_parameters(self, operation: Operation, given: Any) -> None:
        """Change annotations and scheduling parameters; maps merge. Raises YtError."""
        annotations, others = separated(given)
        operation.annotations = merged(operation.annotations, annotations)
        operation.parameters = merged(operation.parameters, others)

    def complete(self, operation: Operation) -> None:
        """End an operation as completed; its running jobs are aborted."""
        self._finish(operation, "completing", COMPLETED, None)

    def abort(self, operation: Operation, message: str | None = None) -> None:
        """End an operation as aborted, with the words of the one who asked for it."""
        inner = [generic(message)] if message else []
        error = YtError(1, "Operation aborted by user request", {"user": USER}, inner)
        self._finish(operation, "aborting", ABORTED, error)

    def fail(self, operation: Operation, error: YtError) -> None:
        self._finish(operation, "failing", FAILED, error)

    def job(self, job_id: str) -> Job:
        """Return a job of any operation. Raises YtError."""
        for operation in self.operations.values():
            if job_id in operation.jobs:
                return operation.jobs[job_id]
        raise YtError(NO_SUCH_JOB, f"No such job {job_id}", {"job_id": job_id})

    def job_of(self, operation: Operation, job_id: str) -> Job:
        """Return a job of that operation. Raises YtError."""
        if job_id not in operation.jobs:
            raise YtError(NO_SUCH_JOB, f"No such job {job_id}", {"job_id": job_id})
        return operation.jobs[job_id]

    def stderr(self, job: Job) -> bytes:
        """Return the kept part of a job's stderr, of a running one, too."""
        return job.stderr if job.finished is not None else self.nodes.stderr(job.id)

    def abort_job(self, job_id: str, reason: str = "user_request") -> None:
        """Abort a job; another one takes its place. Raises YtError."""
        self.require()
        job = self.job(job_id)
        if job.finished is not None:
            raise YtError(NO_SUCH_JOB, f"No such job {job_id}", {"job_id": job_id})
        error = YtError(1, "Job aborted by user request", {"user": USER})
        if reason != "user_request":
            error = YtError(1, "Job aborted", {"abort_reason": reason})
        self._abort(job, reason, error)
        self._replace(job, error)

    # Faults

    def require(self) -> None:
        """Raise YtError while the scheduler is away."""
        if self.is_away:
            raise _unavailable()

    @property
    def is_away(self) -> bool:
        return self._clock.now() < self._away_until

    def go_away(self, seconds: float) -> None:
        """Answer no request about operations for so long; jobs continue."""
        self._away_until = self._clock.now() + seconds

    def lose_node(self, job_id: str, *, stop: bool, declared_after: float) -> None:
        """Lose the node of a running job; the job counts as aborted when that is noticed.

        With `stop` its processes die now; without, they continue beside those of the next attempt.
        """
        job = self.job(job_id)
        if job.state != RUNNING or job.unheard:
            raise generic(f"Job {job_id} runs on no node: it is {job.state}")
        job.unheard = True
        job.stderr = self.nodes.stderr(job_id)
        if stop:
            self.nodes.kill([job_id])
        self._due.append((self._clock.now() + declared_after, "lost", job_id))
        self.tick()

    # Time and the nodes

    def job_ended(self, job_id: str, ending: Ending) -> None:
        """Take note of the end of a job's process; ignore that of a job which is over, or lost."""
        if self.is_away:
            self._unheard.append((job_id, ending))
            return
        job = next((o.jobs[job_id] for o in self.operations.values() if job_id in o.jobs), None)
        if job is None or job.finished is not None or job.unheard:
            return
        job.stderr = ending.stderr
        if ending.error is not None:
            error = YtError.from_dict(ending.error)
            self._over(job, FAILED, error)
            self._replace(job, error)
            return
        self._over(job, COMPLETED, None)
        operation = self.operations[job.operation_id]
        if operation.tasks[job.task].restart_completed_jobs:
            self._new_job(operation, operation.tasks[job.task], job.cookie)
        elif not operation.running():
            self._finish(operation, "completing", COMPLETED, None)

    def tick(self) -> None:
        """Let passing time take effect."""
        if self.is_away:
            return
        unheard, self._unheard = self._unheard, []
        for job_id, ending in unheard:
            self.job_ended(job_id, ending)
        now = self._clock.now()
        due = [item for item in self._due if item[0] <= now]
        if not due:
            return
        self._due = [item for item in self._due if item[0] > now]
        for _, what, job_id in sorted(due):
            if what == "work":
                self._work(self.operations[job_id])
                continue
            job = self.job(job_id)
            if job.finished is not None:
                continue
            if what == "start":
                self._launch(job)
            else:
                error = YtError(1, "Node offline", {"address": job.address})
                self._abort(job, "node_offline", error)
                self._replace(job, error)

    def stop(self) -> None:
        """Kill all processes: the cluster ends, or another state takes this one's place."""
        self.nodes.clear()

    def abort_loaded(self) -> None:
        """Abort what ran when this state was saved: its processes did not outlive it."""
        self._unheard, self._due, self._away_until = [], [], 0.0
        error = generic("Operation aborted: the state of the cluster was loaded from a file")
        for operation in self.operations.values():
            if not operation.is_final:
                self._finish(operation, "aborting", ABORTED, error)

    # The life of a job

    def _new_job(self, operation: Operation, task: Task, cookie: int) -> None:
        job = Job(
            id=ids.new(ids.JOB),
            operation_id=operation.id,
            task=task.name,
            cookie=cookie,
            index=len(operation.jobs),
            task_index=operation.task_indices[task.name],
            address=f"localhost:{self._ports}",
            created=self._clock.now(),
        )
        self._ports += 1
        operation.task_indices[task.name] += 1
        operation.jobs[job.id] = job
        if self.start_delay:
            self._due.append((job.created + self.start_delay, "start", job.id))
        else:
            self._launch(job)

    def _launch(self, job: Job) -> None:
        operation = self.operations[job.operation_id]
        job.state, job.started = RUNNING, self._clock.now()
        numbers = {
            "YT_JOB_COOKIE": job.cookie,
            "YT_JOB_INDEX": job.index,
            "YT_TASK_JOB_INDEX": job.task_index,
        }
        environment = {
            "YT_OPERATION_ID": operation.id,
            "YT_JOB_ID": job.id,
            **{name: str(value) for name, value in numbers.items()},
            **variables(operation.vault),
        }
        artifacts = operation.artifacts[job.task]
        self.nodes.start(Launch(job.id, operation.tasks[job.task], artifacts, environment))

    def _over(self, job: Job, state: str, error: YtError | None) -> None:
        job.state, job.finished = state, self._clock.now()
        job.error = error.to_dict() if error else None

    def _abort(self, job: Job, reason: str, error: YtError | None) -> None:
        if job.state != WAITING and not job.unheard:
            job.stderr = self.nodes.stderr(job.id)
            self.nodes.kill([job.id])
        job.abort_reason = reason
        self._over(job, ABORTED, error)

    def _replace(self, job: Job, error: YtError) -> None:
        """Start a failed or aborted job again, or end its operation.

        Aborts do not count (operation_controller_detail.cpp, SafeOnJobFailed).
        """
        operation = self.operations[job.operation_id]
        if operation.is_final:
            return
        if job.state == FAILED and operation.count(FAILED) >= operation.max_failed_jobs:
            limit = {"max_failed_job_count": operation.max_failed_jobs}
            message = "Failed jobs limit exceeded"
            self.fail(operation, YtError(FAILED_JOBS_LIMIT_EXCEEDED, message, limit, [error]))
        elif operation.fail_on_job_restart:
            message = "Job failed; operation failed because spec option fail_on_job_restart is set"
            attributes = {"job_id": job.id, "reason": job.state}
            self.fail(
                operation, YtError(OPERATION_FAILED_ON_JOB_RESTART, message, attributes, [error])
            )
        else:
            self._new_job(operation, operation.tasks[job.task], job.cookie)

    # The life of an operation

    def _enter(self, operation: Operation, *states: str) -> None:
        for state in states:
            operation.state = state
            operation.events.append((self._clock.now(), state))

    def _finish(
        self, operation: Operation, passing: str, state: str, error: YtError | None
    ) -> None:
        self._enter(operation, passing)
        if operation.work is not None:
            self._bulk.drop(operation.work)
            operation.work = None
        running = operation.running()
        alive = [job.id for job in running if job.state != WAITING and not job.unheard]
        for job in running:
            if job.id in alive:
                job.stderr = self.nodes.stderr(job.id)
            job.abort_reason = f"operation_{state}"
            self._over(job, ABORTED, generic(f"Operation {state}"))
        self.nodes.kill(alive)
        self._enter(operation, state)
        operation.finished = self._clock.now()
        operation.error = error.to_dict() if error else None
        operation.vault, operation.artifacts = {}, {}

    def _require_free(self, alias: str) -> None:
        holder = self.operations.get(self._aliases.get(alias, ""))
        if holder is not None and not holder.is_final:
            raise generic(
                "Operation alias is already used by an operation",
                operation_alias=alias,
                operation_id=holder.id,
            )


NO_SUCH_OPERATION_OF_SCHEDULER = 200
"""The scheduler's own code; the client's get_operation has another one."""


def _unavailable() -> YtError:
    """Return the error that clients know (yt/cpp/mapreduce, IsRetriableError, quotes it)."""
    return generic("No scheduler is configured")


def _no_such_operation(operation_id: str | None) -> YtError:
    return YtError(NO_SUCH_OPERATION, f"No such operation {operation_id}")
