"""What a person on call would look at, read once; changes nothing.

Each part is read on its own: a part that the cluster does not give leaves its default, and its
error's code in ``unread``. No fact but ``end_said`` holds a row's value, a message of the user's
code or a secret, so all others may go into a ticket.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from yt.wrapper.driver import make_formatted_request

from ytstream.cluster import account_usage, mounting, operation
from ytstream.cluster.account_usage import ResourceUsage
from ytstream.cluster.built_reference import MARK as BUILT
from ytstream.cluster.client import Client, connect, explained, facts
from ytstream.cluster.operation import DRIVER, EXECUTOR, Operation
from ytstream.cluster.timestamps import unix_seconds
from ytstream.errors import JobError, RestartableError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import stop_request
from ytstream.instance.lock import InstanceLock
from ytstream.instance.process_identity import is_dead
from ytstream.job import REJECTED, JobContext
from ytstream.ledger.ledger_rows import Head
from ytstream.ledger.positions import MARKER
from ytstream.provisioning import permissions
from ytstream.settings.job_settings import Settings
from ytstream.version import __version__

from ..status import job_status
from ..status.job_status import JobStatus
from . import reference_facts
from .reference_facts import ReferenceState

_REQUEST_SECONDS = 4.0
"""A cluster that hangs is a cause: `why` says so within ten seconds."""
_LINES = 20
"""Warnings and errors of the log that are kept."""
_ATTEMPTS = 20
"""Attempts of driver and executors that are looked at."""
_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (WARNING|ERROR) (?:\[(\w+)\]|(\w+))?")


@dataclass(frozen=True)
class TableState:
    """A table or folder of the job."""

    name: str
    path: str
    state: str = ""
    """"mounted", "unmounted", "frozen", ...; empty for a folder and a static table."""
    is_missing: bool = False
    owner: tuple[str, str] | None = None
    """The job and the ledger of its mark, if it belongs to another job."""
    is_built: bool = False
    """Whether `make reference` has built it."""


@dataclass(frozen=True)
class LockHolder:
    """The transaction that holds the job's lock."""

    transaction: str
    owner: str
    silent_seconds: float
    """Seconds since its last ping, by the cluster's clock."""
    is_dead: bool
    """Whether its process has ended, as far as this machine or its operation tells."""


@dataclass(frozen=True)
class Attempt:
    """One job of the driver's or the executors' operation."""

    of: str
    state: str
    started: str
    ended: str = ""
    codes: tuple[int, ...] = ()
    """All codes of its error."""
    abort_reason: str = ""
    exit_code: int | None = None
    """The exit code of its process; None if something else has ended it."""


@dataclass(frozen=True)
class LogLine:
    """A warning or error of the driver's log: its time, and its code or first word."""

    time: str
    level: str
    word: str


@dataclass(frozen=True)
class Facts:
    """Everything that the causes are judged by."""

    time: datetime
    job: str
    settings: Settings
    make: Callable[[str], str]
    """How a person calls a target, such as "make status CONFIG=..."."""
    refused: ErrorCode | None = None
    """Why the cluster could not be connected; None if it was."""
    unread: Mapping[str, ErrorCode] = field(default_factory=dict)
    """Part -> the code of the error with which it could not be read."""
    tables: Sequence[TableState] = ()
    references: Sequence[ReferenceState] = ()
    full: Sequence[ResourceUsage] = ()
    proxies: int | None = None
    """The RPC proxies of the job's role; None: not asked."""
    lock: LockHolder | None = None
    status: JobStatus | None = None
    end_code: str = ""
    """The code of the error that ended the last process; empty after a stop, or if it has not said.
    """
    end_said: str = ""
    """What it has said, which may hold text of the user's: for the screen, and in no ticket."""
    attempts: Sequence[Attempt] = ()
    log: Sequence[LogLine] = ()
    ahead_here: float = 0.0
    """Seconds by which a clock is ahead of the cluster's: this machine's, and the driver's."""
    ahead_driver: float = 0.0
    missing_to_read: Sequence[str] = ()
    missing_to_stop: Sequence[str] = ()
    runtime: str = __version__
    is_one_to_one: bool = False
    """Whether each row that is read is written once: a map without further outputs."""

    @property
    def head(self) -> Head | None:
        """The head of the ledger, once the job has started."""
        return self.status.head if self.status is not None else None

    @property
    def was_submitted(self) -> bool:
        """Whether the last process was an operation's; also of a job that has never run."""
        return self.head is None or "operation " in self.head.owner

    @property
    def start(self) -> str:
        """How to start the job in the way in which it was started."""
        return self.make("submit" if self.was_submitted else "run")

    @property
    def replace(self) -> str:
        """How to start it with other settings or another version."""
        if self.was_submitted:
            return self.make("submit REPLACE=1")
        return f"{self.make('stop')} and {self.make('run')}"

    @property
    def operation(self) -> Operation | None:
        """The job's newest operation."""
        return self.status.operation if self.status is not None else None


def collect(unconnected: JobContext) -> Facts:
    """Connect to the cluster and read all parts. Raises nothing that a cluster can cause."""
    settings = unconnected.settings
    found: dict[str, Any] = {}
    base = partial(
        Facts, datetime.now(UTC), unconnected.job.name, settings, unconnected.make
    )  # fmt: skip
    try:
        client = connect(settings, patient=False, seconds=_REQUEST_SECONDS)
    except (JobError, RestartableError) as error:
        return base(refused=error.code)
    context = replace(unconnected, client=client)
    unread: dict[str, ErrorCode] = {}

    def of_operation(context: JobContext) -> dict[str, Any]:
        return _of_operation(context, found.get("status"))

    parts = {**_PARTS, "operation": of_operation}
    for part, read in parts.items():
        try:
            with explained(settings):
                found |= read(context)
        except (JobError, RestartableError) as error:
            unread[part] = error.code
            if error.code is ErrorCode.OUTAGE:  # the other parts would wait as long
                break
    job = unconnected.job
    is_one_to_one = job.processing == "map" and {*job.outputs} <= {"output", REJECTED}
    return base(unread=unread, is_one_to_one=is_one_to_one, **found)


def _tables(context: JobContext) -> dict[str, Any]:
    return {"tables": [*_states(context)]}


def _states(context: JobContext) -> Iterator[TableState]:
    settings = context.settings
    named = [("queue", path) for path in settings.queues]
    named += [("consumer", settings.consumer), ("ledger", settings.ledger)]
    named += [(f"output {name!r}", path) for name, path in settings.outputs.items()]
    named += [("checkpoint", settings.checkpoint)]
    named += [("reference", settings.reference)] if settings.reference is not None else []
    named += [(f"reference {name!r}", path) for name, path in settings.references.items()]
    for name, path in named:
        found = facts(context.client, path, ["tablet_state", MARKER, BUILT])
        if found is None:
            yield TableState(name, path, is_missing=True)
            continue
        mark = found.get(MARKER)
        mark = mark if isinstance(mark, Mapping) else {}
        owner = str(mark.get("job", "")), str(mark.get("ledger", settings.ledger))
        is_foreign = bool(mark) and owner != (context.job.name, settings.ledger)
        state = str(found.get("tablet_state", "")).replace(mounting.STATIC, "")
        yield TableState(
            name, path, state, owner=owner if is_foreign else None, is_built=BUILT in found
        )


def _references(context: JobContext) -> dict[str, Any]:
    return {"references": [*reference_facts.states(context)]}


def _accounts(context: JobContext) -> dict[str, Any]:
    used = account_usage.of_job(context.client, context.settings)
    return {"full": [one for one in used if one.is_full]}


def _proxies(context: JobContext) -> dict[str, Any]:
    role = context.settings.proxy_role
    if role is None:
        return {}
    parameters = {"type": "rpc", "role": role}
    # yt.wrapper has no call for it; SPYT's Java client sends the same request.
    client: Any = context.client
    answer = make_formatted_request("discover_proxies", parameters, format=None, client=client)
    listed = answer["proxies"] if isinstance(answer, Mapping) else answer
    return {"proxies": len(listed)}


def _lock(context: JobContext) -> dict[str, Any]:
    client = context.client
    lock = InstanceLock(client, context.settings.consumer)
    for id_, owner, ping in lock.holders():
        silent = _cluster_time(client) - datetime.fromisoformat(ping).timestamp()
        return {"lock": LockHolder(id_, owner, silent, _is_over(client, id_, owner))}
    return {}


def _is_over(client: Client, transaction: str, owner: str) -> bool:
    process = str(client.get_attribute(f"#{transaction}", "process", ""))
    if is_dead(process):
        return True
    seen = operation.of_owner(client, owner)
    return seen is not None and seen.is_final


def _status(context: JobContext) -> dict[str, Any]:
    found = job_status.read(context)
    if found.head is None:
        return {"status": found}
    ended = stop_request.end_of(context, found.head.owner)
    ahead = 0.0
    if found.batches:
        ahead = found.batches[-1].ended.timestamp() - _cluster_time(context.client)
    code, how = (ended.code, ended.how) if ended is not None else ("", "")
    said = {"end_code": code, "end_said": how.removeprefix(stop_request.FAILED_PREFIX)}
    return {"status": found, "ahead_driver": max(0.0, ahead), **said}


def _clock(context: JobContext) -> dict[str, Any]:
    before = time.time()
    theirs = _cluster_time(context.client)
    ahead = (before + time.time()) / 2 - theirs
    return {"ahead_here": ahead if abs(ahead) > 1 else 0.0}


def _cluster_time(client: Client) -> float:
    return float(unix_seconds(int(client.generate_timestamp())))


def _rights(context: JobContext) -> dict[str, Any]:
    client = context.client
    user = str(client.get_user_name())
    wanted = permissions.rights(permissions.ON_CALL, context.job, context.settings)
    stop = permissions.of_stop(context.settings)
    return {
        "missing_to_read": [*permissions.missing(client, wanted, user)],
        "missing_to_stop": [*permissions.missing(client, stop, user)],
    }


_PARTS: Mapping[str, Callable[[JobContext], dict[str, Any]]] = {
    "tables": _tables,
    "accounts": _accounts,
    "proxies": _proxies,
    "lock": _lock,
    "status": _status,
    "clock": _clock,
    "rights": _rights,
    "references": _references,
}
"""In the order in which they are read; the status needs most of the others to be in place."""


def _of_operation(context: JobContext, status: JobStatus | None) -> dict[str, Any]:
    """Return the attempts of driver and executors, and the end of the driver's log."""
    seen = status.operation if status is not None else stop_request.of_job(context)
    if seen is None:
        return {}
    client = context.client
    attempts = [*_attempts(client, DRIVER, seen.id)]
    if seen.executors is not None:
        attempts += _attempts(client, EXECUTOR, seen.executors)
    newest = [run.id for run in operation.runs(client, seen.id)[:1]]
    log = [line for id_ in newest for line in log_lines(operation.stderr(client, seen.id, id_))]
    return {"attempts": attempts, "log": log}


def _attempts(client: Client, of: str, id_: str) -> Iterator[Attempt]:
    """Yield the attempts, the newest first."""
    listed = client.list_jobs(operation_id=id_, limit=200)["jobs"]
    newest = sorted(listed, key=lambda job: str(job.get("start_time") or ""), reverse=True)
    for job in newest[:_ATTEMPTS]:
        error = job.get("error") or {}
        reason = job.get("abort_reason") or (error.get("attributes") or {}).get("abort_reason")
        yield Attempt(
            of=of,
            state=str(job["state"]),
            started=str(job.get("start_time") or ""),
            ended=str(job.get("finish_time") or ""),
            codes=tuple(_codes(error)),
            abort_reason=str(reason or ""),
            exit_code=next(_exit_codes(error), None),
        )


def _codes(error: Mapping[str, Any]) -> Iterator[int]:
    """Yield the code of an error and those of its inner errors."""
    if error.get("code"):
        yield int(error["code"])
    for inner in error.get("inner_errors") or ():
        yield from _codes(inner)


def _exit_codes(error: Mapping[str, Any]) -> Iterator[int]:
    """Yield the exit codes that an error or its inner errors have as an attribute."""
    if (found := (error.get("attributes") or {}).get("exit_code")) is not None:
        yield int(found)
    for inner in error.get("inner_errors") or ():
        yield from _exit_codes(inner)


def log_lines(text: str) -> list[LogLine]:
    """Return the last warnings and errors of a log, without what they say: that may be of rows."""
    found = [_LINE.match(line) for line in text.splitlines()]
    kept = [match for match in found if match is not None][-_LINES:]
    return [LogLine(match[1], match[2], _known(match[3] or "")) for match in kept]


def _known(word: str) -> str:
    """Return a code of ours; of a text of the user's, nothing."""
    return word if word in {*map(str, ErrorCode)} else ""
