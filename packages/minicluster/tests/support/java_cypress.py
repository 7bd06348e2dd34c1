"""The Java client's calls for Cypress, files, static tables and transactions.

See `java_client.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from packages.minicluster.tests.support.java_values import ROWS, Java, joined

Names = list[str]
Rows = list[dict[str, Any]]
PERMISSIONS = {"read": 1, "write": 2}
"""Bits of EPermission (core/ytree/permission.h)."""


class _File:
    """What `read_file` returns."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        return self._data


class JavaCypress:
    """Raises YtError with the codes of the cluster, LacksError for what the client has not got."""

    config: ClassVar = {"backend": "java"}

    def __init__(self, java: Java, client: Any) -> None:
        self._java = java
        self._client = client
        self._transactions: dict[str, Any] = {}
        self._current: list[Any] = []
        """The transactions that the caller is inside of."""

    # Cypress

    def create(
        self,
        type: str,
        path: str | None = None,
        *,
        recursive: bool = False,
        attributes: Mapping[str, Any] | None = None,
    ) -> str:
        kind = self._java.kind("tech.ytsaurus.core.cypress.CypressNodeType", type)
        request = self._java.builder("CreateNode").setPath(self._java.path(path)).setType(kind)
        given = self._java.node(dict(attributes or {})).asMap()
        return str(self._ask("createNode", request.setRecursive(recursive).setAttributes(given)))

    def set(self, path: str, value: Any) -> None:
        self._ask(
            "setNode",
            self._java.request("SetNode")(
                self._java.path(path), self._java.node(value)
            ).toBuilder(),
        )

    def get(self, path: str, *, attributes: Names | None = None) -> Any:
        return self._java.value(self._ask("getNode", self._look("GetNode", path, attributes)))

    def list(self, path: str, *, attributes: Names | None = None) -> list[Any]:
        found: list[Any]
        found = self._java.value(self._ask("listNode", self._look("ListNode", path, attributes)))
        return found

    def exists(self, path: str) -> bool:
        return bool(
            self._ask(
                "existsNode", self._java.request("ExistsNode")(self._java.path(path)).toBuilder()
            )
        )

    def remove(self, path: str, *, force: bool = False) -> None:
        self._ask(
            "removeNode",
            self._java.builder("RemoveNode").setPath(self._java.path(path)).setForce(force),
        )

    def copy(self, source: str, destination: str) -> None:
        self._ask("copyNode", self._java.request("CopyNode")(source, destination).toBuilder())

    def move(self, source: str, destination: str) -> None:
        self._ask("moveNode", self._java.request("MoveNode")(source, destination).toBuilder())

    def link(self, source: str, destination: str) -> None:
        self._ask("linkNode", self._java.request("LinkNode")(source, destination).toBuilder())

    def lock(self, path: str) -> None:
        mode = self._java.find("tech.ytsaurus.core.request.LockMode.Exclusive")
        self._ask(
            "lockNode", self._java.builder("LockNode").setPath(self._java.path(path)).setMode(mode)
        )

    def get_attribute(self, path: str, name: str) -> Any:
        return self.get(f"{path}/@{name}")

    def set_attribute(self, path: str, name: str, value: Any) -> None:
        self.set(f"{path}/@{name}", value)

    def has_attribute(self, path: str, name: str) -> bool:
        return self.exists(f"{path}/@{name}")

    def remove_attribute(self, path: str, name: str) -> None:
        self.remove(f"{path}/@{name}")

    def check_permission(self, user: str, permission: str, path: str) -> dict[str, str]:
        request = self._java.builder("CheckPermission").setUser(user).setPath(path)
        found = self._ask("checkPermission", request.setPermissions(PERMISSIONS[permission]))
        return {"action": str(found.getAction()).removeprefix("SA_").lower()}

    # Files and static tables

    def write_file(self, path: str, data: bytes) -> None:
        self.remove(path, force=True)
        self.create("file", path)
        writer = self._ask("writeFile", self._java.builder("WriteFile").setPath(path))
        for start in range(0, len(data), 1 << 20):
            while not writer.write(data[start : start + (1 << 20)]):
                joined(writer.readyEvent())
        joined(writer.close())

    def read_file(
        self, path: str, *, offset: int | None = None, length: int | None = None
    ) -> _File:
        request = self._java.builder("ReadFile").setPath(path)
        if offset is not None:
            request = request.setOffset(self._java.long(offset))
        if length is not None:
            request = request.setLength(self._java.long(length))
        reader, found = self._ask("readFile", request), b""
        while reader.canRead():
            if part := reader.read():
                found += bytes(part)
            else:
                joined(reader.readyEvent())
        joined(reader.close())
        return _File(found)

    def write_table(self, path: Any, rows: Iterable[Mapping[str, Any]]) -> None:
        schema = self._schema(str(path))
        given = self._java.find(f"{ROWS}.UnversionedRowSerializer")(schema)
        request = (
            self._java.builder("WriteTable").setPath(self._java.rich(path)).setNeedRetries(False)
        )
        request = request.setSerializationContext(
            self._java.request("WriteSerializationContext")(given)
        )
        writer = self._ask("writeTable", request)
        joined(writer.readyEvent())
        writer.write([self._java.row(schema, row) for row in rows], schema)
        joined(writer.close())

    def read_table(self, path: Any) -> Rows:
        given = self._java.find(f"{ROWS}.UnversionedRowDeserializer")()
        context = self._java.request("ReadSerializationContext")(given)
        request = self._java.builder("ReadTable").setPath(self._java.rich(path))
        reader = self._ask("readTable", request.setSerializationContext(context))
        found: Rows = []
        while reader.canRead():
            if (part := reader.read()) is not None:
                schema = reader.getCurrentReadSchema()
                found += [self._java.value(row.toYTreeMap(schema, True)) for row in part]
            else:
                joined(reader.readyEvent())
        joined(reader.close())
        return found

    # Transactions

    def start_transaction(self, *, type: str = "master", timeout: int = 30_000) -> str:
        request = getattr(self._java.request("StartTransaction"), type)().toBuilder()
        request.setTransactionTimeout(self._java.jvm.java.time.Duration.ofMillis(timeout))
        started = joined(self._client.startTransaction(request.setPing(False).build()))
        name = str(started.getId().toString())
        self._transactions[name] = started
        return name

    @contextmanager
    def Transaction(  # noqa: N802 - the client's name
        self,
        *,
        type: str = "master",
        timeout: int = 30_000,
        transaction_id: str | None = None,
        ping: bool = True,
    ) -> Iterator[None]:
        name = transaction_id or self.start_transaction(type=type, timeout=timeout)
        self._current.append(self._transactions[name])
        try:
            yield
        finally:
            self._current.pop()
        if transaction_id is None:
            self.commit_transaction(name)

    def commit_transaction(self, transaction: str) -> None:
        joined(self._transactions[transaction].commit())

    def abort_transaction(self, transaction: str) -> None:
        joined(self._transactions[transaction].abort())

    def ping_transaction(self, transaction: str) -> None:
        joined(self._transactions[transaction].ping())

    def generate_timestamp(self) -> int:
        return int(joined(self._client.generateTimestamps()).getValue())

    # Requests

    def _look(self, request: str, path: str, attributes: Names | None) -> Any:
        made = self._java.builder(request).setPath(self._java.path(path))
        return made if attributes is None else made.setAttributes(attributes)

    def _ask(self, method: str, builder: Any) -> Any:
        """Call a method that a master transaction has as well."""
        masters = [it for it in self._current if not it.isSticky()]
        target = masters[-1] if masters else self._client
        return joined(getattr(target, method)(builder.build()))

    def _schema(self, path: str) -> Any:
        found = self._java.node(self.get(f"{path}/@schema"))
        return self._java.jvm.tech.ytsaurus.core.tables.TableSchema.fromYTree(found)
