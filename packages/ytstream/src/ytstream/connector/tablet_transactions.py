"""Tablet transactions, through the client in SPYT's jars.

There are none over HTTP (YTsaurus documentation, "Dynamic tables: FAQ"), so ytsaurus-client alone
cannot write two tables at once, or write a row only if no other process has written it meanwhile.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from ..errors import ConflictError, RestartableError
from ..schema.columns import Column
from ..settings.job_settings import Settings
from . import compile_java
from .java import Java
from .java_trace import bottom, cluster_error, trace_of
from .spyt import attached, rpc_client

_CONFLICT = '"code"=1700'
""""Row lock conflict" (YTsaurus, error_codes: TransactionLockConflict)."""


class Transaction:
    """One tablet transaction: it reads as of its start."""

    def __init__(self, java: Java, opened: Callable[[], Any]) -> None:
        self._java, self._opened = java, opened

    @cached_property
    def _transaction(self) -> Any:
        with _explained():
            return self._opened()

    @property
    def id(self) -> str:
        """The transaction's id."""
        return str(self._transaction.getId().toString())

    @property
    def timestamp(self) -> int | None:
        """The cluster's time of its start; None if the client does not know it."""
        return int(self._transaction.getStartTimestamp().getValue()) or None

    @property
    def proxy(self) -> str:
        """The address of the RPC proxy that it lives on."""
        return str(self._transaction.getRpcProxyAddress())

    def select(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of ``query``. Raises RestartableError."""
        with _explained():
            rows = self._transaction.selectRows(query).join().getYTreeRows()
            found: list[dict[str, Any]] = self._java.value(rows)
        return found

    def modify(
        self,
        path: str,
        columns: Sequence[Column],
        rows: Iterable[Mapping[str, Any]],
        deleted: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Write ``rows`` into the table at ``path`` and delete those with the keys ``deleted``."""
        with _explained():
            java = self._java
            request = java["tech.ytsaurus.client.request.ModifyRowsRequest.builder"]()
            request.setPath(path).setSchema(java.schema(columns))
            for row in rows:
                request.addInsert(java.node(row).asMap())
            for key in deleted:
                request.addDelete(java.node(key).asMap())
            self._transaction.modifyRows(request.build()).join()

    def insert(self, path: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
        """Write many rows of numbers and texts, with the classes of the runtime's own connector."""
        with _explained():
            compile_java.insert(
                self._java, self._transaction, path, self._java.schema(columns), rows
            )

    def advance(self, consumer: str, queue: str, partition: int, old: int | None, new: int) -> None:
        """Move the consumer; refused unless it is at row ``old``, if that is given."""
        path = self._java["tech.ytsaurus.core.cypress.YPath.simple"]
        with _explained():
            request = (
                self._java["tech.ytsaurus.client.request.AdvanceConsumer.builder"]()
                .setConsumerPath(path(consumer))
                .setQueuePath(path(queue))
                .setPartitionIndex(partition)
                .setNewOffset(new)
            )
            if old is not None:
                request.setOldOffset(old)
            self._transaction.advanceConsumer(request.build()).join()

    def advance_all(self, consumer: str, queue: str, to: Mapping[int, int]) -> None:
        """Move the consumer in several partitions, wherever it is, at once if possible."""
        if to and compile_java.is_loaded(self._java):
            with _explained():
                compile_java.advance(self._java, self._transaction, consumer, queue, to)
            return
        for partition, row in to.items():
            self.advance(consumer, queue, partition, None, row)

    def commit(self) -> None:
        """Commit. Raises ConflictError, or RestartableError when it may have committed or not."""
        with _explained():
            self._transaction.commit().join()

    def abort(self) -> None:
        """Abort; a transaction that is over, or out of reach, stays as it is."""
        try:
            self._transaction.abort().join()
        except Py4JJavaError:
            return


@dataclass
class Tablets:
    """Makes transactions; ``jvm`` is one with SPYT's jars in it."""

    jvm: Any
    settings: Settings
    beside: ThreadPoolExecutor = field(default_factory=ThreadPoolExecutor)
    """Runs JVM calls off the batch thread. Shared by all queries of the process, since each worker
    keeps a py4j connection; a second worker starts where the first hangs."""
    _clients: dict[str | None, Any] = field(default_factory=dict)

    @cached_property
    def java(self) -> Java:
        """The names that are called in the JVM."""
        return Java(self.jvm)

    def connect_ahead(self) -> threading.Thread:
        """Make the client, and send it a request, in a thread: the first one loads many classes.

        Whoever needs the client waits for nothing here, and says what is wrong.
        """

        def connect() -> None:
            with suppress(Py4JError):
                self._client(None).existsNode("/").join()

        thread = threading.Thread(target=connect, name="connecting", daemon=True)
        thread.start()
        return thread

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Start a transaction; commit it at the end, abort it on an exception."""
        start = self.java["tech.ytsaurus.client.request.StartTransaction.tablet"]()
        with _explained():
            started = self._client(None).startTransaction(start).join()
        transaction = Transaction(self.java, lambda: started)
        try:
            yield transaction
        except BaseException:
            transaction.abort()
            raise
        transaction.commit()

    def attached(self, transaction_id: str, proxy: str | None) -> Transaction:
        """Return a transaction that SPYT has opened on ``proxy`` and will commit.

        To attach to it is a request, which its first use sends: not the thread of the batch.
        """
        attach = compile_java.attached if compile_java.is_loaded(self.java) else attached
        return Transaction(
            self.java, lambda: attach(self.java, self._client(proxy), transaction_id)
        )

    def _client(self, proxy: str | None) -> Any:
        """Return SPYT's client, of only one proxy if ``proxy`` names it."""
        if proxy not in self._clients:
            self._clients[proxy] = rpc_client(self.java, self.settings, proxy)
        return self._clients[proxy]


@contextmanager
def _explained() -> Iterator[None]:
    """Turn the client's exceptions into one line."""
    try:
        yield
    except _java_errors() as error:
        text = trace_of(error)
        if _CONFLICT in text:
            raise ConflictError(bottom(text).line) from error
        raise (cluster_error(text) or RestartableError(bottom(text).line)) from error


def _java_errors() -> tuple[type[Exception], ...]:
    """Return the classes of Java's exceptions: PySpark, where it is loaded, has some of its own."""
    errors = sys.modules.get("pyspark.errors")
    return (Py4JJavaError,) if errors is None else (Py4JJavaError, errors.PySparkException)
