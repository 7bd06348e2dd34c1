"""A cluster in this process: the minicluster's own commands, without sockets and without a JVM.

The runtime gets a client and tablet transactions that look like those of ytsaurus-client and of
SPYT. Every request passes one gate, where a process may die or be paused, so a test reaches each
moment of a start or of a batch by its number.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from yt import yson
from yt.common import YtError, YtResponseError

from minicluster.cluster import Cluster
from minicluster.core import errors
from minicluster.http import commands  # registers the commands
from minicluster.http.registry import COMMANDS, Invocation, WithParameters
from ytstream.errors import ConflictError, RestartableError
from ytstream.schema.columns import Column

assert commands
_NO_DEFAULT = object()


class DeathError(BaseException):
    """The process is gone: nothing of it may catch this, and no request follows."""


@dataclass
class Process:
    """One process as the cluster sees it: its requests, and the one at which it stops.

    A function of the process runs in a thread of its own, but never beside another one: ``run``
    returns when the function has ended or waits at its request.
    """

    left: int | None = None
    """Requests to go until the process dies or is paused; None: neither."""
    is_paused: bool = False
    is_dead: bool = False
    loses: bool = False
    """Whether the next commit of a tablet transaction is applied without an answer."""
    _dies: bool = False
    _thread: threading.Thread | None = None
    _stopped: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _resumed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _error: BaseException | None = None

    def request(self) -> None:
        """Let one request pass, or end or pause the process before it."""
        if self.is_dead:
            raise DeathError
        if self.left is None:
            return
        self.left -= 1
        if self.left > 0:
            return
        self.left = None
        if not self._dies:
            self.is_paused = True
            self._stopped.release()
            self._resumed.acquire()
            self.is_paused = False
        if self._dies:
            self.is_dead = True
            raise DeathError

    def run(
        self, function: Callable[[], object], *, dies: int | None = None, pauses: int | None = None
    ) -> bool:
        """Run ``function``; return whether it has ended. Raises what it raises.

        The process ``dies`` or ``pauses`` at the request of that number, if there are so many.
        """
        self.left, self._dies = dies or pauses, dies is not None
        if pauses is None:
            function()
            self.left = None
            return True

        def body() -> None:
            try:
                function()
            except BaseException as error:
                self._error = error
            self._stopped.release()

        self._thread = threading.Thread(target=body, daemon=True)
        self._thread.start()
        return self._waited()

    def wake(self) -> None:
        """Continue a paused process to the end of its function. Raises what that raises."""
        self._resumed.release()
        self._waited()

    def kill(self) -> None:
        """End the process; a paused one does not continue."""
        if self.is_paused:
            self._dies = True
            self._resumed.release()
            self._waited(quiet=True)
        self.is_dead = True

    def _waited(self, *, quiet: bool = False) -> bool:
        self._stopped.acquire()
        if self.is_paused:
            return False
        assert self._thread is not None
        self._thread.join()
        self.left, self._thread = None, None
        error, self._error = self._error, None
        if error is not None and not quiet:
            raise error
        return True


class Inside:
    """The commands of a cluster, called by one process."""

    def __init__(self, cluster: Cluster, process: Process) -> None:
        self.cluster, self.process = cluster, process

    def call(self, name: str, given: Any = None, **parameters: Any) -> Any:
        """Run a command of the HTTP API. Raises YtError as ytsaurus-client would."""
        self.process.request()
        found = {key: value for key, value in parameters.items() if value is not None}
        command = COMMANDS[name]
        self.cluster.tick()
        try:
            command.known.check(found)
            answer = command.body(
                Invocation(self.cluster, None, None, found, given)  # type: ignore[arg-type]
            )
        except errors.YtError as error:
            raise YtResponseError(error.to_dict()) from None
        result = answer.result if isinstance(answer, WithParameters) else answer
        return result if isinstance(result, bytes) else _plain(result)


_INPUT = "input"
"""The input of a call, among its arguments."""
_CALLS: Mapping[str, Sequence[str]] = {
    "get": ("path", "attributes"),
    "set": ("path", _INPUT),
    "list": ("path",),
    "exists": ("path",),
    "create": ("type", "path"),
    "remove": ("path", "recursive", "force"),
    "move": ("source_path", "destination_path", "force"),
    "copy": ("source_path", "destination_path"),
    "read_file": ("path",),
    "write_file": ("path", _INPUT),
    "read_table": ("path",),
    "write_table": ("path", _INPUT),
    "mount_table": ("path",),
    "unmount_table": ("path",),
    "reshard_table": ("path", "tablet_count"),
    "get_tablet_infos": ("path", "tablet_indexes"),
    "trim_rows": ("path", "tablet_index", "trimmed_row_count"),
    "get_operation": ("operation_id",),
    "select_rows": ("query",),
    "lookup_rows": ("path", _INPUT),
    "insert_rows": ("path", _INPUT),
    "delete_rows": ("path", _INPUT),
    "register_queue_consumer": ("queue_path", "consumer_path", "vital"),
    "list_queue_consumer_registrations": ("queue_path", "consumer_path"),
    "advance_queue_consumer": (
        "consumer_path", "queue_path", "partition_index", "old_offset", "new_offset",
    ),
}  # fmt: skip
"""Calls of ytsaurus-client that are one command: the arguments of each, by the command's names."""
_READS = frozenset({"select_rows", "lookup_rows"})
_OF_ROWS = _READS | {
    "insert_rows", "delete_rows", "register_queue_consumer", "list_queue_consumer_registrations",
    "advance_queue_consumer",
}  # fmt: skip
"""Those that a master transaction has no part in."""
_OF_ONE_VALUE = frozenset({"get", "list", "exists"})


class InsideClient:
    """The part of ytsaurus-client that the runtime and the tests call."""

    def __init__(self, cluster: Cluster, process: Process) -> None:
        self.inside = Inside(cluster, process)
        self._transactions: list[str] = []

    def __getattr__(self, name: str) -> Any:
        """Return a call of the client that is one command. Raises AttributeError."""
        if name not in _CALLS:
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *given: Any, **options: Any) -> Any:
        options.pop("sync", None)  # every command is done when it has returned
        parameters = {**dict(zip(_CALLS[name], given, strict=False)), **options}
        if parameters.get("attributes") is not None:
            parameters["attributes"] = _yson(parameters["attributes"])
        if "tablet_indexes" in parameters:
            parameters["tablet_indexes"] = [*parameters["tablet_indexes"]]
        if self._transactions and name not in _OF_ROWS:
            parameters["transaction_id"] = self._transactions[-1]
        rows = parameters.pop(_INPUT, None)
        if name in _OF_ROWS and rows is not None:
            rows = [*rows]
        is_plain = isinstance(rows, bytes) or _INPUT not in _CALLS[name]
        found = self.inside.call(name, rows if is_plain else _yson(rows), **parameters)
        if name in _READS:
            return iter(found)
        return found["value"] if name in _OF_ONE_VALUE else found

    @contextmanager
    def Transaction(self, **_: Any) -> Iterator[None]:  # noqa: N802
        """Run the block in a master transaction."""
        found = self.inside.call("start_transaction")["transaction_id"]
        self._transactions.append(found)
        try:
            yield
        except BaseException as error:
            self._transactions.pop()
            if not isinstance(error, DeathError):
                self.inside.call("abort_transaction", transaction_id=found)
            raise
        self._transactions.pop()
        self.inside.call("commit_transaction", transaction_id=found)

    def get_attribute(self, path: str, attribute: str, default: Any = _NO_DEFAULT) -> Any:
        """Return an attribute, or ``default`` where there is none."""
        try:
            return self.get(f"{path}/@{attribute}")
        except YtError as error:
            if default is _NO_DEFAULT or not error.is_resolve_error():
                raise
            return default

    def read_file(self, path: str) -> Any:
        """Return a file as a stream."""
        return io.BytesIO(self._call("read_file", path))

    def write_file(self, destination: str, stream: bytes, force_create: bool = False) -> None:
        """Write a file, in one request more where it may be a new one."""
        if force_create:
            self.create("file", destination, recursive=True, ignore_existing=True)
        self._call("write_file", destination, stream)


class InsideTransaction:
    """A tablet transaction, as SPYT's client has it."""

    proxy = "inside"

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self.id = str(
            inside.call("start_transaction", type="tablet", timeout=300_000)["transaction_id"]
        )
        self.timestamp = int(inside.call("generate_timestamp")["timestamp"])

    def _call(self, name: str, given: Any = None, **parameters: Any) -> Any:
        try:
            return self._inside.call(name, given, transaction_id=self.id, **parameters)
        except YtError as error:
            text = str(error.inner_errors[0].get("message"))
            is_conflict = error.contains_code(errors.TABLET_LOCK_CONFLICT)
            raise (ConflictError if is_conflict else RestartableError)(text) from error

    def select(self, query: str) -> list[dict[str, Any]]:
        return [*self._call("select_rows", query=query)]

    def modify(
        self,
        path: str,
        columns: Sequence[Column],
        rows: Iterable[Mapping[str, Any]],
        deleted: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        if written := [*rows]:
            self._call("insert_rows", _yson(written), path=path)
        if keys := [*deleted]:
            self._call("delete_rows", _yson(keys), path=path)

    def advance(self, consumer: str, queue: str, partition: int, old: int | None, new: int) -> None:
        self._call(
            "advance_queue_consumer",
            consumer_path=consumer,
            queue_path=queue,
            partition_index=partition,
            **({} if old is None else {"old_offset": old}),
            new_offset=new,
        )

    def advance_all(self, consumer: str, queue: str, to: Mapping[int, int]) -> None:
        for partition, row in to.items():
            self.advance(consumer, queue, partition, None, row)

    def commit(self) -> None:
        self._call("commit_transaction")
        if self._inside.process.loses:
            self._inside.process.loses = False
            raise RestartableError("the reply to the commit is lost")

    def abort(self) -> None:
        try:
            self._call("abort_transaction")
        except RestartableError:
            return


@dataclass
class InsideTablets:
    """Makes tablet transactions; stands for ytstream.connector.tablet_transactions.Tablets."""

    inside: Inside

    @contextmanager
    def transaction(self) -> Iterator[InsideTransaction]:
        transaction = InsideTransaction(self.inside)
        try:
            yield transaction
        except DeathError:
            raise
        except BaseException:
            transaction.abort()
            raise
        transaction.commit()


def _plain(value: Any) -> Any:
    """Return an answer as the client reads it, without references into the cluster."""
    if isinstance(value, yson.YsonEntity):
        return None
    found: Any = value
    if isinstance(value, bytes):
        found = value.decode()
    elif isinstance(value, Mapping):
        found = {_plain(key): _plain(item) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        found = [_plain(item) for item in value]
    attributes = getattr(value, "attributes", None)
    return yson.to_yson_type(found, attributes=_plain(attributes)) if attributes else found


def _yson(value: Any) -> Any:
    """Return the value as it arrives on the cluster."""
    return yson.loads(yson.dumps(value))
