"""`stop`: asks the running job, wherever it runs, to finish its batch and end.

The request is a row of the ledger beside the head. The job reads both before every batch, and every
few seconds while it is idle. On a cluster its operation has to end, too: YTsaurus starts a driver
again that has failed, and one that waits for a node has no epoch that a row could name.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress

from yt.common import YtError

from ..cluster import operation
from ..cluster.operation import Operation
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger import ledger_rows
from ..ledger.ledger_rows import End
from ..ledger.positions import owner_of, read_head
from ..recovery.epoch import Epoch
from .lock import InstanceLock

_POLL_SECONDS = 0.5
END_SECONDS = 90.0
"""How long an operation may take to end after its driver: SPYT gives executors 10 s."""
FAILED_PREFIX = "failed: "
"""Begins how a process has ended, when an error ended it."""


def stop(context: JobContext, say: Callable[[str], None], seconds: float = math.inf) -> str:
    """Ask the job to stop, wait until it and its operation have ended, and return how.

    An operation whose process has not ended after so many ``seconds`` is ended.
    Raises JobError when a job without an operation ends without a word.
    """
    found = of_job(context)
    if found is None or found.is_final:
        return _stop_process(context, say)
    try:
        line = _stop_process(context, say, time.monotonic() + seconds)
    except JobError as error:
        line = error.message
    return f"{line}\n{_await_end(context, found, say)}"


def rehearse(context: JobContext) -> str:
    """Return whom `stop` would ask; changes nothing."""
    lock = InstanceLock(context.client, context.settings.consumer)
    found = of_job(context)
    lines = [
        f"{owner} would be asked to finish its batch and end" for _, owner, _ in lock.holders()
    ] or ["the job does not run"]
    if found is not None and not found.is_final:
        lines.append(f"operation {found.id}, which is {found.state}, would end")
    return "\n".join([*lines, "nothing was changed"])


def of_job(context: JobContext) -> Operation | None:
    """Return the job's newest operation; None where the cluster runs none."""
    client, settings = context.client, context.settings
    with suppress(YtError):
        head = read_head(settings.ledger, client.select_rows)
        return operation.of_job(client, settings.alias, settings.ledger, owner_of(head))
    return None


def _await_end(context: JobContext, found: Operation, say: Callable[[str], None]) -> str:
    """Wait until the operation is final; end it when no driver of it is there to do so."""
    client, end = context.client, time.monotonic() + END_SECONDS
    lock = InstanceLock(client, context.settings.consumer)
    said = False
    while True:
        now = operation.get(client, found.id)
        if now is None or now.is_final:
            return f"operation {found.id} is {now.state if now is not None else 'gone'}"
        ended = _end(context)
        is_over = ended is not None and operation.id_in(ended.owner) == found.id
        if (not is_over and not list(lock.holders())) or time.monotonic() > end:
            return "ended: " + ", ".join(operation.abort(client, now, "`stop` was called"))
        if not said:
            say(f"waiting for the end of operation {found.id}")
            said = True
        time.sleep(_POLL_SECONDS)


def _stop_process(context: JobContext, say: Callable[[str], None], until: float = math.inf) -> str:
    """Ask the process that holds the lock to stop; return how it ended.

    Raises JobError for one that was killed, or that runs on after ``until``.
    """
    client, settings = context.client, context.settings
    lock = InstanceLock(client, settings.consumer)
    if not list(lock.holders()):
        return f"the job does not run{_last(context)}"
    asked, before = 0, _end(context)
    while True:
        head = read_head(settings.ledger, client.select_rows)
        if head is not None and head.epoch != asked:  # it may have restarted meanwhile
            client.insert_rows(settings.ledger, [ledger_rows.stop_row(head.epoch)])
            if not asked:
                say("asked the job to finish its batch and stop; an idle job checks every 15 s")
            asked = head.epoch
        # First the lock: a process says how it ends, then gives up its lock.
        is_held = bool(list(lock.holders()))
        # An older process may say meanwhile that its epoch is over. A process that never raised an
        # epoch reports 0.
        if (ended := _end(context)) and ended != before and ended.epoch in (0, asked):
            return f"the job has ended: {ended.how}"
        if not is_held:
            raise JobError(
                "the job's lock is free and the job has not said how it ended: it was killed",
                "its log says more; the next start continues from the ledger",
                code=ErrorCode.KILLED,
            )
        if time.monotonic() > until:
            remedy = f"see {context.make('logs')}"
            raise JobError(
                "the job was asked to stop and has not ended", remedy, code=ErrorCode.STOP_LATE
            )
        time.sleep(_POLL_SECONDS)


def tell_end(context: JobContext, mine: Epoch, how: str, code: str = "") -> None:
    """Write how this process ends into the ledger; a cluster that is away is not told."""
    with suppress(YtError, OSError):
        row = ledger_rows.end_row(mine.number, mine.owner, how, code)
        context.client.insert_rows(context.settings.ledger, [row])


def tell_command(context: JobContext, how: str) -> None:
    """Write that a command has moved the job and ended; a cluster that is away is not told.

    Without it, the process that has the head would look as if it had been killed.
    """
    with suppress(YtError, OSError):
        head = read_head(context.settings.ledger, context.client.select_rows)
        if head is not None:
            tell_end(context, Epoch(owner=head.owner, number=head.epoch), how)


def connector_of(context: JobContext, epoch: int) -> str:
    """Return what the process of that epoch has said of its connector; empty if nothing."""
    path = context.settings.ledger
    rows = list(context.client.select_rows(ledger_rows.connector_query(path)))
    return str(rows[0]["state"]["said"]) if rows and rows[0]["epoch"] == epoch else ""


def _end(context: JobContext) -> End | None:
    path = context.settings.ledger
    rows = list(context.client.select_rows(ledger_rows.end_query(path)))
    return ledger_rows.end_of(rows[0]) if rows else None


def _last(context: JobContext) -> str:
    ended = _end(context)
    return f"; the last time it ended: {ended.how}" if ended is not None else ""


def end_of(context: JobContext, owner: str) -> End | None:
    """Return how the process ``owner`` has ended; None if it runs, or was killed."""
    ended = _end(context)
    return ended if ended is not None and ended.owner == owner else None
