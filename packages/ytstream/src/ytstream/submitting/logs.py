"""`logs`: what driver and executors have written to standard error."""

import time
from collections.abc import Callable, Iterator

from .. import operation
from ..cluster import Client
from ..errors import JobError
from ..job import Connection
from ..operation import DRIVER, Operation, Run
from ..recovery.snapshot import read_head

_POLL_SECONDS = 3.0


def job_operation(connection: Connection) -> Operation:
    """Return the job's newest operation. Raises JobError where there is none."""
    client, settings = connection.client, connection.settings
    head = read_head(settings.ledger, client.select_rows)
    found = operation.of_job(client, settings.alias, settings.ledger, head)
    if found is None:
        raise JobError(
            f"no operation of this job: none has the alias {settings.alias}, and the ledger names "
            "none",
            "start it by `make submit`; a job of `make run` writes into its own terminal",
        )
    return found


def logs(connection: Connection) -> Iterator[str]:
    """Yield the newest attempt of the driver, then of each executor, a header before each."""
    for what, id_, run in _newest(connection.client, job_operation(connection)):
        yield _header(what, run)
        yield operation.stderr(connection.client, id_, run.id).rstrip("\n")


def follow(connection: Connection, pause: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Yield what is added to the driver's stderr, attempt after attempt, until the operation ends.

    YTsaurus keeps the first and the last half of what a job writes: between two looks some of a
    long log may go.
    """
    seen: dict[str, str] = {}
    while True:
        found = job_operation(connection)
        runs = operation.runs(connection.client, found.id)
        for run in runs[:1]:
            if run.id not in seen:
                yield _header(DRIVER, run)
            said = operation.stderr(connection.client, found.id, run.id)
            said += "\n" * (run.state in operation.FINAL and not said.endswith("\n"))
            yield from added(seen.get(run.id, ""), said)
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
    if found.executors is None:
        return
    runs = operation.runs(client, found.executors)
    running = [run for run in runs if run.state not in operation.FINAL]
    for number, run in enumerate(running or runs[:1]):
        yield f"executor {number}", found.executors, run
