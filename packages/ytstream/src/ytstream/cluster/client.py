"""The client of the cluster: the one place that knows ytsaurus-client's settings and errors."""

import errno
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import yt.wrapper as yt
from yt.common import YtError

from ..errors import JobError, OutageError, RestartableError, open_files
from ..errors.error_codes import ErrorCode
from ..settings import environment
from ..settings.addresses import is_loopback
from ..settings.job_settings import Settings, token
from .server_errors import AUTHENTICATION, judged

_RETRIES = {"count": 3, "backoff": {"policy": "constant_time", "constant_time": 1_000}}

_WRONG_OBJECTS = {
    "cannot have children": "a folder must be there: name another path in the configuration, or "
    "move that object away",
    "has no child with key": "`check` lists what the job needs: correct the path in the "
    "configuration, or make what is missing; if the path is a link, its target is missing",
    "is not dynamic": "the job needs a dynamic table there: `check` lists what differs",
}
"""What the cluster says of a path with another object than the job needs -> what to do. A running
job tries again: someone may be about to put the right one there."""


class Client(Protocol):
    """The part of ``yt.wrapper.YtClient`` that this runtime calls; the library ships no types."""

    Transaction: Any

    def start_transaction(self, timeout: float, attributes: dict[str, str]) -> Any: ...
    def ping_transaction(self, transaction: str) -> Any: ...
    def abort_transaction(self, transaction: str) -> Any: ...
    def get(self, path: str, attributes: list[str] | None = None) -> Any: ...
    def get_attribute(self, path: str, attribute: str, default: Any = ...) -> Any: ...
    def set(self, path: str, value: Any) -> Any: ...
    def list(self, path: str) -> Any: ...
    def exists(self, path: str) -> bool: ...
    def create(self, type: str, path: str, **options: Any) -> Any: ...
    def remove(self, path: str, recursive: bool = False, force: bool = False) -> Any: ...
    def move(self, source_path: str, destination_path: str) -> Any: ...
    def copy(self, source_path: str, destination_path: str) -> Any: ...
    def lock(self, path: str, mode: str, child_key: str | None = None, **options: Any) -> Any: ...
    def link(self, target_path: str, link_path: str, **options: Any) -> Any: ...
    def read_file(self, path: str) -> Any: ...
    def write_file(self, destination: str, stream: bytes, force_create: bool = False) -> Any: ...
    def read_table(self, table: Any) -> Any: ...
    def get_table_columnar_statistics(self, paths: Sequence[Any]) -> Any: ...
    def alter_table(self, path: str, schema: Any = None, dynamic: bool | None = None) -> Any: ...
    def unmount_table(self, path: str, sync: bool = False) -> Any: ...
    def reshard_table(self, path: str, pivot_keys: Any, sync: bool = False) -> Any: ...
    def mount_table(self, path: str, freeze: bool = False, sync: bool = False) -> Any: ...
    def run_sort(self, source_table: str, destination_table: str, **options: Any) -> Any: ...
    def run_merge(self, source_table: str, destination_table: str, **options: Any) -> Any: ...
    def select_rows(
        self, query: str, timestamp: int | None = None, input_row_limit: int | None = None
    ) -> Any: ...
    def lookup_rows(self, table: str, input_stream: Any, timestamp: int | None = None) -> Any: ...
    def insert_rows(self, table: str, input_stream: Any, update: bool = False) -> Any: ...
    def delete_rows(self, table: str, input_stream: Any) -> Any: ...
    def get_tablet_infos(self, path: str, tablet_indexes: Any) -> Any: ...
    def register_queue_consumer(self, queue: str, consumer: str, vital: bool) -> Any: ...
    def list_queue_consumer_registrations(self, queue_path: Any, consumer_path: Any) -> Any: ...
    def advance_queue_consumer(
        self, consumer: str, queue: str, partition: int, old_offset: int | None, new_offset: int
    ) -> Any: ...
    def generate_timestamp(self) -> Any: ...
    def trim_rows(self, path: str, tablet_index: int, trimmed_row_count: int) -> Any: ...
    def check_permission(self, user: str, permission: str, path: str) -> Any: ...
    def get_user_name(self) -> Any: ...
    def get_operation(self, operation_id: str | None = None, **options: Any) -> Any: ...
    def list_operations(self, limit: int) -> Any: ...
    def list_jobs(self, operation_id: str, **options: Any) -> Any: ...
    def get_job_stderr(self, operation_id: str, job_id: str) -> Any: ...
    def update_operation_parameters(
        self, operation_id: str, parameters: Mapping[str, Any]
    ) -> Any: ...
    def abort_operation(self, operation: str, message: str) -> Any: ...


def connect(
    settings: Settings,
    *,
    patient: bool = True,
    seconds: float = 20,
    shell: Mapping[str, str] = os.environ,
) -> Client:
    """Return a client of the cluster that has answered once; one that is not patient tries once.

    A request has so many ``seconds``. ``shell`` holds the token.

    Raises OutageError when the proxy cannot be reached, JobError when it refuses the token.
    """
    given = token(settings, shell)
    client = client_of(settings.proxy, given, patient=patient, seconds=seconds)
    with explained(settings):
        client.get("//sys/@cluster_name")
    return client


def client_of(proxy: str, token: str, *, patient: bool = True, seconds: float = 20) -> Client:
    """Return a client that has not asked the cluster yet; a request has so many seconds."""
    # Inside a job the client refuses all requests without it (yt/wrapper/common.py,
    # forbidden_inside_job).
    os.environ["YT_ALLOW_HTTP_REQUESTS_TO_YT_FROM_JOB"] = "1"
    os.environ.pop("YT_FORBID_REQUESTS_FROM_JOB", None)
    environment.reach_this_machine()
    # It logs each retry with all headers; what is raised is explained.
    logging.getLogger("Yt").setLevel(logging.CRITICAL)
    retries = {**_RETRIES, "enable": patient}
    client: Client = yt.YtClient(
        proxy=proxy,
        token=token,
        config={
            # The defaults try for two minutes before they report an unreachable cluster.
            "proxy": {
                "retries": retries,
                "operation_state_discovery_retry_count": retries["count"],
                "connect_timeout": 5_000,
                "request_timeout": int(1000 * seconds),
                # Heavy are select_rows and its like; here they read a few rows.
                "heavy_request_timeout": int(1000 * seconds),
            },
            "dynamic_table_retries": retries,
            "get_operation_retries": retries,
            # A lost ping is reported to the supervisor, not raised in whichever thread runs.
            "ping_failed_mode": "pass",
            # A commit waits until the thread of the pings wakes up (PingTransaction.stop): by
            # default up to 100 ms, for each batch with pieces and each table of an archive.
            "transaction_sleep_period": 10,
        },
    )
    return client


@contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Turn ytsaurus-client's errors into one line each.

    Raises JobError for errors that a person has to fix, OutageError for a cluster that does not
    answer and for a table that is not mounted, RestartableError for others that may pass.
    """
    try:
        yield
    except BrokenPipeError:  # of what is printed: the client's own is a ConnectionError of requests
        raise
    except (YtError, OSError) as error:
        raise explanation(error, settings.proxy) from error


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""What writing an open file says; the network has other numbers."""


def explanation(error: Exception, proxy: str) -> JobError | RestartableError:
    """Return what an error of ytsaurus-client's means: see explained()."""
    line = first_line(error)
    if open_files.is_exhausted(error):
        return open_files.exhausted()
    if isinstance(error, OSError) and error.filename is not None:  # a file, not the network
        return JobError(
            f"{error.filename}: {error.strerror}",
            "correct the path or its rights",
            code=ErrorCode.FILE,
        )
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return JobError(
            f"a file could not be written here: {error.strerror}",
            "make room for it",
            code=ErrorCode.DISK_FULL,
        )
    has_code = getattr(error, "contains_code", lambda code: False)
    if isinstance(error, yt.errors.YtTokenError):
        has_code = {AUTHENTICATION}.__contains__
    found = judged(has_code, line, proxy)
    if found is not None and found.code is not ErrorCode.PERMISSION:
        return found
    # Missing, full or not for this user: the cluster's messages name all of them like this.
    named = re.search(r'(account|bundle|medium) "', line, re.IGNORECASE)
    if named and re.search("no such|denied|limit|not allowed", line, re.IGNORECASE):
        setting = {"bundle": "tablet_cell_bundle"}.get(named[1].lower(), named[1].lower())
        remedy = f"correct `{setting}` in the configuration, or ask its owner for its use"
        return JobError(f"{proxy}: {line}", remedy, code=ErrorCode.QUOTA)
    if found is not None:
        return found
    for said, remedy in _WRONG_OBJECTS.items():
        if said in line:
            return RestartableError(f"{proxy}: {line}", remedy, code=ErrorCode.NOT_PROVISIONED)
    has_answered = isinstance(error, yt.errors.YtHttpResponseError | yt.errors.YtResponseError)
    # The client's own, of a mount that takes too long (dynamic_table_commands.py).
    if has_answered or "Timed out while waiting for tablets" in line:
        return RestartableError(f"{proxy}: {line}")
    return OutageError(
        f"cannot reach the cluster at {proxy}: {line}",
        "start `python -m minicluster` in another terminal"
        if is_loopback(proxy)
        else "check `proxy` in the configuration and that the cluster is up",
    )


def first_line(error: BaseException) -> str:
    """Return the innermost message: of a YtError's inner errors, or of another error's causes."""
    current: Any = error
    while inner := _inner(current):
        current = inner
    said = current if isinstance(current, dict) else vars(current)
    # urllib3's own text names objects in memory, the system's says "Connection refused".
    text = said.get("message") or getattr(current, "strerror", None) or str(current)
    lines = str(text).strip().splitlines()
    return re.sub(r"\s+", " ", lines[0]) if lines else type(error).__name__


def _inner(error: Any) -> Any:
    # Inner errors are YtErrors or, as they came over the wire, maps.
    if isinstance(error, dict | YtError):
        inner = error.get("inner_errors") if isinstance(error, dict) else error.inner_errors
        return inner[0] if inner else None
    inner = error.__cause__ or error.__context__
    return None if isinstance(inner, TypeError) else inner  # urllib3 tries two ways to read


def concatenate(client: Client, sources: Sequence[str], target: str) -> None:
    """Replace the rows of a static table by those of others, in the client's transaction.

    One request: the client's own concatenate() makes a transaction for it and asks for types.
    """
    from yt.wrapper.driver import make_request

    make_request(
        "concatenate", {"source_paths": [*sources], "destination_path": target}, client=client
    )


def facts(client: Client, path: str, names: Sequence[str]) -> dict[str, Any] | None:
    """Return those of the attributes that the node has, in one request; None without the node."""
    try:
        return {**client.get(f"{path}/@", attributes=[*names])}
    except YtError as error:
        if error.is_resolve_error():
            return None
        raise


def cluster_name(client: Client) -> str:
    """Return the name by which consumers and Spark's offsets know the cluster."""
    return str(client.get("//sys/@cluster_name"))


def plain(value: Any) -> Any:
    """Return a value of the client's as Python's own: its types have attributes."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, bool) or value is None:
        return value
    return next((kind(value) for kind in (int, float) if isinstance(value, kind)), str(value))
