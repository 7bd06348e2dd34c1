"""`logs`: what driver and executors have written to standard error."""

import time
from collections.abc import Callable, Iterator

from ytstream.cluster import operation
from ytstream.cluster.client import Client
from ytstream.cluster.operation import DRIVER, EXECUTOR, Operation, Run
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger.positions import owner_of, read_head

_POLL_SECONDS = 3.0


def job_operation(context: JobContext) -> Operation:
    """Return the job's newest operation. Raises JobError where there is none."""
    client, settings = context.client, context.settings
    head = read_head(settings.ledger, client.select_rows)
    found = operation.of_job(client, settings.alias, settings.ledger, owner_of(head))
    if found is None:
        raise JobError(
            f"no operation of this job: none has the alias {settings.alias}, and the ledger names "
            "none",
            f"start it by {context.make('submit')}; a job of `make run` writes into its own "
            "terminal",
            code=ErrorCode.OPERATION_GONE,
        )
    return found


def logs(context: JobContext) -> Iterator[str]:
    """Yield the newest attempt of the driver, then of each executor, a header before each."""
    for what, id_, run in _newest(context.client, job_operation(context)):
        yield _header(what, run)
        yield operation.stderr(context.client, id_, run.id).rstrip("\n")


def follow(context: JobContext, pause: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Yield what is added to the stderr of driver and executors until the operation ends.

    A header stands above the lines of each job; a new attempt is another job. YTsaurus keeps the
    first and the last half of what a job writes: between two looks some of a long log may go.
    """
    client, last = context.client, ""
    seen: dict[str, str] = {}
    done: set[str] | None = None
    while True:
        found = job_operation(context)
        executors = _executors(client, found)
        if done is None:  # of those that had ended before, the newest will do
            done = {run.id for run in executors[1:] if run.state in operation.FINAL}
        jobs = [(DRIVER, found.id, run) for run in operation.runs(client, found.id)[:1]]
        jobs += [(EXECUTOR, str(found.executors), run) for run in reversed(executors)]
        for what, id_, run in jobs:
            if run.id in done:
                continue
            said = operation.stderr(client, id_, run.id)
            if run.state in operation.FINAL:
                said += "\n" * (said != "" and not said.endswith("\n"))
                done.add(run.id)
            lines = added(seen.get(run.id, ""), said)
            if run.id not in seen or (lines and run.id != last):
                yield _header(what, run)
                last = run.id
            yield from lines
            seen[run.id] = said
        if found.is_final:
            yield f"=== operation {found.id} is {found.state}: {found.error or 'no error'}"
            return
        pause(_POLL_SECONDS)


def added(before: str, now: str) -> list[str]:
    """Return the lines that are new; where the beginning has changed, those after the last known.

    An unfinished last line comes with its end.
    """
    whole = now[: now.rfind("\n") + 1]
    known = before[: before.rfind("\n") + 1]
    if whole.startswith(known):
        return whole[len(known) :].splitlines()
    last = known.splitlines()[-1:]
    lines = whole.splitlines()
    at = len(lines) - lines[::-1].index(last[0]) if last and last[0] in lines else 0
    return lines[at:]


def _header(what: str, run: Run) -> str:
    began = operation.moment(run.started)
    return f"=== {what}, job {run.id}, {run.state}, began {began}, on {run.host}"


def _newest(client: Client, found: Operation) -> Iterator[tuple[str, str, Run]]:
    for run in operation.runs(client, found.id)[:1]:
        yield DRIVER, found.id, run
    runs = _executors(client, found)
    running = [run for run in runs if run.state not in operation.FINAL]
    for number, run in enumerate(running or runs[:1]):
        yield f"{EXECUTOR} {number}", str(found.executors), run


def _executors(client: Client, found: Operation) -> list[Run]:
    """Return the jobs of the executors' operation, the newest first."""
    return operation.runs(client, found.executors) if found.executors is not None else []
