"""The job's operations on the cluster: found by alias or by the ledger's owner, and looked at.

SPYT starts two: the driver's, whose id and alias are the job's, and the executors', whose id the
driver writes into the description of its own (YTsaurusOperationManager).
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from yt.common import YtError
from yt.wrapper.driver import make_request
from yt.wrapper.operation_commands import get_operation_url

from .client import Client, first_line

FINAL = ("completed", "failed", "aborted")
"""Of an operation or a job that does not change any more (YTsaurus, NScheduler::EOperationState).
"""
_NO_SUCH_OPERATION = 1915
""""No such operation" (YTsaurus, yt/yt/client/api: NoSuchOperation); an alias that none has is
refused by a message without a code."""
_UNKNOWN_ALIAS = "alias is unknown"
_OWNER = re.compile(r"\boperation ([0-9a-f]+(?:-[0-9a-f]+){3})")
_ATTRIBUTES = (
    "id", "state", "start_time", "finish_time", "authenticated_user", "result",
    "runtime_parameters", "provided_spec",
)  # fmt: skip
NOTE = "ytstream"
"""The key of `annotations` under which `submit` says what it has started."""
DRIVER, EXECUTOR = "driver", "executor"


@dataclass(frozen=True)
class Run:
    """One job of an operation, which is one attempt."""

    id: str
    state: str
    started: str
    ended: str = ""
    host: str = ""
    error: str = ""


@dataclass(frozen=True)
class Operation:
    """One operation as the cluster describes it."""

    id: str
    state: str
    user: str = ""
    started: str = ""
    ended: str = ""
    error: str = ""
    """Why it has failed or was aborted, in one line."""
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL

    @property
    def note(self) -> Mapping[str, Any]:
        """The version, the commit and the ledger that `submit` has written; empty for others."""
        found = self.annotations.get(NOTE, {})
        return found if isinstance(found, Mapping) else {}

    @property
    def description(self) -> Mapping[str, Any]:
        """The description, as the driver writes it: "Web UI", "Executors operation ID"."""
        found = self.annotations.get("description", {})
        return found if isinstance(found, Mapping) else {}

    @property
    def executors(self) -> str | None:
        """The id of the executors' operation; None until the driver has started it."""
        found = self.description.get("Executors operation ID")
        return str(found) if found else None


def get(client: Client, id_: str | None = None, alias: str | None = None) -> Operation | None:
    """Return an operation, under an alias the latest one; None where there is none."""
    try:
        found = client.get_operation(
            operation_id=id_,
            operation_alias=alias,
            attributes=[*_ATTRIBUTES],
            include_runtime=True,  # the cluster finds aliases of running operations there
        )
    except YtError as error:
        if is_unknown(error):
            return None
        raise
    runtime, spec = found.get("runtime_parameters") or {}, found.get("provided_spec") or {}
    failure = (found.get("result") or {}).get("error") or {}
    return Operation(
        id=str(found["id"]),
        state=str(found["state"]),
        user=str(found.get("authenticated_user", "")),
        started=str(found.get("start_time") or ""),
        ended=str(found.get("finish_time") or ""),
        error=reason(failure) if failure.get("code") else "",
        annotations=runtime.get("annotations") or spec.get("annotations") or {},
    )


def moment(given: str) -> str:
    """Return a time of the cluster's, 2026-11-23T20:00:00.5Z, as people read it."""
    return f"{given[:19].replace('T', ' ')} UTC"


def is_unknown(error: YtError) -> bool:
    """Return whether the cluster has no such operation."""
    has_code = error.contains_code(_NO_SUCH_OPERATION) or error.is_resolve_error()
    return has_code or _UNKNOWN_ALIAS in str(error)


def reason(failure: Mapping[str, Any]) -> str:
    """Return the innermost message of an error that came as a map."""
    return first_line(YtError(**{key: failure[key] for key in ("message", "code", "inner_errors")
                                 if key in failure}))  # fmt: skip


def of_job(client: Client, alias: str, ledger: str, owner: str | None) -> Operation | None:
    """Return the job's newest operation: by its alias, else by the owner in the ledger's head.

    An alias of the user's own may have become another job's.
    """
    found = get(client, alias=alias)
    if found is not None and found.note.get("ledger") == ledger:
        return found
    return of_owner(client, owner)


def of_owner(client: Client, owner: str | None) -> Operation | None:
    """Return the operation of the process that has raised the epoch last."""
    id_ = id_in(owner) if owner is not None else None
    return get(client, id_) if id_ is not None else None


def id_in(owner: str) -> str | None:
    """Return the operation that an owner of the ledger names; None for a process elsewhere."""
    found = _OWNER.search(owner)
    return found[1] if found else None


def own(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the id of the operation that this process is a job of; None elsewhere."""
    return environment.get("YT_OPERATION_ID")


def is_own(owner: str) -> bool:
    """Return whether a process of the ledger or of the lock is of this process' operation."""
    return own() is not None and id_in(owner) == own()


def runs(client: Client, id_: str, state: str | None = None) -> list[Run]:
    """Return the jobs of an operation, the newest first."""
    listed = client.list_jobs(operation_id=id_, job_state=state, limit=200)["jobs"]
    found = [
        Run(
            id=str(job["id"]),
            state=str(job["state"]),
            started=str(job.get("start_time") or ""),
            ended=str(job.get("finish_time") or ""),
            host=str(job.get("address") or ""),
            error=reason(job["error"]) if (job.get("error") or {}).get("code") else "",
        )
        for job in listed
    ]
    return sorted(found, key=lambda run: run.started, reverse=True)


def stderr(client: Client, id_: str, run: str) -> str:
    """Return what a job has written to standard error until now; empty where nothing is kept."""
    try:
        said = client.get_job_stderr(operation_id=id_, job_id=run).read()
    except YtError:  # of a job that has just begun there is none
        return ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def last_lines(text: str, count: int) -> Sequence[str]:
    """Return the end of a job's stderr, without the lines of Java's frames."""
    lines = [line for line in text.splitlines() if not re.match(r"\s+at |\s*\.\.\. \d+ more", line)]
    return lines[-count:]


def address(client: Client, id_: str) -> str:
    """Return where the web interface shows the operation; the cluster may name its own address."""
    with suppress(YtError, OSError):
        return str(get_operation_url(id_, client=client) or "")
    return ""


def refusal_of_an_empty_one(client: Client) -> str:
    """Return why the cluster does not start an operation without tasks."""
    try:
        make_request(
            "start_operation", {"operation_type": "vanilla", "spec": {"tasks": {}}}, client=client
        )
    except YtError as error:
        return str(error)
    return ""


def abort(client: Client, found: Operation, why: str) -> Iterator[str]:
    """End an operation and that of its executors, if they run; yield what was ended."""
    for what, id_ in ((DRIVER, found.id), ("executors", found.executors)):
        if id_ is None:
            continue
        with suppress(YtError, OSError):
            now = get(client, id_)
            if now is not None and not now.is_final:
                client.abort_operation(id_, message=why)
                yield f"the {what}'s operation {id_}"
