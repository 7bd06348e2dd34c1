"""The Java client, which Spark reaches a cluster by, under the names of `yt.wrapper.YtClient`.

The basics (`basics.py`) are written against the latter. Each call here is one or two of the Java
client's own, in a JVM without Spark. It takes the jars of SPYT, and those of Spark that they need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yt.wrapper as yt
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError
from yt import yson

REQUEST = "tech.ytsaurus.client.request"
PERMISSIONS = {"read": 1, "write": 2}
"""Bits of EPermission (core/ytree/permission.h)."""
TABLET_INDEX = "$tablet_index"
ROWS = "tech.ytsaurus.client.rows"
TYPE = "tech.ytsaurus.core.tables.ColumnValueType"


class LacksError(Exception):
    """The Java client has no such call."""


@contextmanager
def jvm() -> Iterator[Any]:
    """Start a JVM with the client in its class path; it ends with this process at the latest."""
    spark, spyt = (Path(str(find_spec(name).origin)).parent for name in ("pyspark", "spyt"))  # type: ignore[union-attr]
    (py4j,) = (spark / "jars").glob("py4j-*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=f"{spyt}/jars/common/*:{spark}/jars/*",
        javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        die_on_exit=True,
        enable_auth=True,
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()


@contextmanager
def connect(http: str) -> Iterator[JavaClient]:
    """Yield a client of the cluster."""
    with jvm() as java:
        auth = java.tech.ytsaurus.client.rpc.YTsaurusClientAuth.builder()
        client = java.tech.ytsaurus.client.YTsaurusClient(
            java.tech.ytsaurus.client.bus.DefaultBusConnector(),
            f"http://{http}",
            auth.setUser("root").setToken("any").build(),
        )
        try:
            yield JavaClient(java, client)
        finally:
            client.close()


class _File:
    """What `read_file` returns."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        return self._data


class JavaClient:
    """Values go over as text of YSON. Raises YtError with the codes of the cluster."""

    def __init__(self, java: Any, client: Any) -> None:
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
        kind = self._enum("tech.ytsaurus.core.cypress.CypressNodeType", type)
        request = self._builder("CreateNode").setPath(self._path(path)).setType(kind)
        given = self._node(dict(attributes or {})).asMap()
        return str(self._ask("createNode", request.setRecursive(recursive).setAttributes(given)))

    def set(self, path: str, value: Any) -> None:
        self._ask("setNode", self._class("SetNode")(self._path(path), self._node(value)).toBuilder())

    def get(self, path: str, *, attributes: list[str] | None = None) -> Any:
        return self._value(self._ask("getNode", self._look("GetNode", path, attributes)))

    def list(self, path: str, *, attributes: list[str] | None = None) -> list[Any]:
        found: list[Any]
        found = self._value(self._ask("listNode", self._look("ListNode", path, attributes)))
        return found

    def exists(self, path: str) -> bool:
        return bool(self._ask("existsNode", self._class("ExistsNode")(self._path(path)).toBuilder()))

    def remove(self, path: str, *, force: bool = False) -> None:
        self._ask("removeNode", self._builder("RemoveNode").setPath(self._path(path)).setForce(force))

    def copy(self, source: str, destination: str) -> None:
        self._ask("copyNode", self._class("CopyNode")(source, destination).toBuilder())

    def move(self, source: str, destination: str) -> None:
        self._ask("moveNode", self._class("MoveNode")(source, destination).toBuilder())

    def link(self, source: str, destination: str) -> None:
        self._ask("linkNode", self._class("LinkNode")(source, destination).toBuilder())

    def lock(self, path: str) -> None:
        mode = self._find("tech.ytsaurus.core.request.LockMode.Exclusive")
        self._ask("lockNode", self._builder("LockNode").setPath(self._path(path)).setMode(mode))

    def get_attribute(self, path: str, name: str) -> Any:
        return self.get(f"{path}/@{name}")

    def set_attribute(self, path: str, name: str, value: Any) -> None:
        self.set(f"{path}/@{name}", value)

    def has_attribute(self, path: str, name: str) -> bool:
        return self.exists(f"{path}/@{name}")

    def remove_attribute(self, path: str, name: str) -> None:
        self.remove(f"{path}/@{name}")

    def check_permission(self, user: str, permission: str, path: str) -> dict[str, str]:
        request = self._builder("CheckPermission").setUser(user).setPath(path)
        found = self._ask("checkPermission", request.setPermissions(PERMISSIONS[permission]))
        return {"action": str(found.getAction()).removeprefix("SA_").lower()}

    # Files and static tables

    def write_file(self, path: str, data: bytes) -> None:
        self.remove(path, force=True)
        self.create("file", path)
        writer = self._ask("writeFile", self._builder("WriteFile").setPath(path))
        for start in range(0, len(data), 1 << 20):
            while not writer.write(data[start : start + (1 << 20)]):
                self._joined(writer.readyEvent())
        self._joined(writer.close())

    def read_file(self, path: str, *, offset: int | None = None, length: int | None = None) -> _File:
        request = self._builder("ReadFile").setPath(path)
        if offset is not None:
            request = request.setOffset(self._long(offset))
        if length is not None:
            request = request.setLength(self._long(length))
        reader, found = self._ask("readFile", request), b""
        while reader.canRead():
            if part := reader.read():
                found += bytes(part)
            else:
                self._joined(reader.readyEvent())
        self._joined(reader.close())
        return _File(found)

    def write_table(self, path: Any, rows: Iterable[Mapping[str, Any]]) -> None:
        schema = self._schema(str(path))
        given = self._find(f"{ROWS}.UnversionedRowSerializer")(schema)
        request = self._builder("WriteTable").setPath(self._rich(path)).setNeedRetries(False)
        request = request.setSerializationContext(self._class("WriteSerializationContext")(given))
        writer = self._ask("writeTable", request)
        self._joined(writer.readyEvent())
        writer.write([self._row(schema, row) for row in rows], schema)
        self._joined(writer.close())

    def read_table(self, path: Any) -> list[dict[str, Any]]:
        given = self._find(f"{ROWS}.UnversionedRowDeserializer")()
        context = self._class("ReadSerializationContext")(given)
        request = self._builder("ReadTable").setPath(self._rich(path))
        reader = self._ask("readTable", request.setSerializationContext(context))
        found: list[dict[str, Any]] = []
        while reader.canRead():
            if (part := reader.read()) is not None:
                schema = reader.getCurrentReadSchema()
                found += [self._value(row.toYTreeMap(schema, True)) for row in part]
            else:
                self._joined(reader.readyEvent())
        self._joined(reader.close())
        return found

    # Transactions

    def start_transaction(self, *, type: str = "master", timeout: int = 30_000) -> str:
        request = getattr(self._class("StartTransaction"), type)().toBuilder()
        request.setTransactionTimeout(self._java.java.time.Duration.ofMillis(timeout))
        started = self._joined(self._client.startTransaction(request.setPing(False).build()))
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
        self._joined(self._transactions[transaction].commit())

    def abort_transaction(self, transaction: str) -> None:
        self._joined(self._transactions[transaction].abort())

    def ping_transaction(self, transaction: str) -> None:
        self._joined(self._transactions[transaction].ping())

    def generate_timestamp(self) -> int:
        return int(self._joined(self._client.generateTimestamps()).getValue())

    # Dynamic tables

    def mount_table(self, path: str, *, sync: bool) -> None:
        self._table("mountTable", "MountTable", path)

    def unmount_table(self, path: str, *, sync: bool) -> None:
        self._table("unmountTable", "UnmountTable", path)

    def freeze_table(self, path: str, *, sync: bool) -> None:
        self._table("freezeTable", "FreezeTable", path)

    def unfreeze_table(self, path: str, *, sync: bool) -> None:
        self._table("unfreezeTable", "UnfreezeTable", path)

    def reshard_table(
        self,
        path: str,
        pivot_keys: list[list[Any]] | None = None,
        *,
        tablet_count: int | None = None,
        sync: bool,
    ) -> None:
        request = self._builder("ReshardTable").setPath(self._path(path))
        if tablet_count is not None:
            request = request.setTabletCount(tablet_count)
        if pivot_keys is not None:
            request = request.setSchema(self._schema(path).toLookup())
            for key in pivot_keys:
                request = request.addPivotKey(self._list(key))
        self._joined(self._client.reshardTable(request.build()))

    def alter_table(self, path: str, *, schema: list[dict[str, Any]]) -> None:
        request = self._builder("AlterTable").setPath(self._path(path))
        given = yson.to_yson_type(schema, attributes={"strict": True, "unique_keys": True})
        self._joined(self._client.alterTable(request.setSchema(self._node(given)).build()))

    def get_tablet_infos(self, path: str, tablets: list[int]) -> dict[str, Any]:
        found = self._joined(self._client.getTabletInfos(path, tablets))
        names = {"total_row_count": "getTotalRowCount", "trimmed_row_count": "getTrimmedRowCount"}
        return {
            "tablets": [
                {name: int(getattr(info, call)()) for name, call in names.items()} for info in found
            ]
        }

    def insert_rows(
        self, path: str, rows: Sequence[Mapping[str, Any]], *, update: bool = False
    ) -> None:
        self._modify(path, "addUpdate" if update else "addInsert", rows)

    def delete_rows(self, path: str, keys: Sequence[Mapping[str, Any]]) -> None:
        self._modify(path, "addDelete", keys)

    def lookup_rows(
        self,
        path: str,
        keys: Iterable[Mapping[str, Any]],
        *,
        column_names: list[str] | None = None,
        keep_missing_rows: bool = False,
        timestamp: int | None = None,
    ) -> list[Any]:
        schema = self._schema(path).toLookup()
        request = self._builder("LookupRowsRequest").setPath(path).setSchema(schema)
        request = request.setKeepMissingRows(keep_missing_rows)
        for name in column_names or ():
            request = request.addLookupColumn(name)
        for key in keys:
            request = request.addFilter(self._list([*key.values()]))
        if timestamp is not None:
            request = request.setTimestamp(self._timestamp(timestamp))
        return self._found(self._client.lookupRows(request.build()))

    def select_rows(self, query: str) -> list[Any]:
        return self._found(self._client.selectRows(self._class("SelectRowsRequest").of(query)))

    # Queues

    def pull_queue(
        self, path: str, *, offset: int, partition_index: int, max_row_count: int = 1000
    ) -> list[Any]:
        request = self._builder("PullQueue").setQueuePath(self._path(path))
        return self._pulled("pullQueue", request, offset, partition_index, max_row_count)

    def pull_queue_consumer(
        self, consumer: str, path: str, *, offset: int, partition_index: int
    ) -> list[Any]:
        request = self._builder("PullConsumer").setQueuePath(self._path(path))
        request = request.setConsumerPath(self._path(consumer))
        return self._pulled("pullConsumer", request, offset, partition_index, 1000)

    def trim_rows(self, path: str, tablet: int, count: int) -> None:
        self._joined(self._client.trimTable(path, tablet, self._long(count)))

    def register_queue_consumer(self, path: str, consumer: str, *, vital: bool) -> None:
        request = self._builder("RegisterQueueConsumer").setQueuePath(self._path(path))
        request = request.setConsumerPath(self._path(consumer)).setVital(vital)
        self._joined(self._client.registerQueueConsumer(request.build()))

    def unregister_queue_consumer(self, path: str, consumer: str) -> None:
        request = self._builder("UnregisterQueueConsumer").setQueuePath(self._path(path))
        request = request.setConsumerPath(self._path(consumer))
        self._joined(self._client.unregisterQueueConsumer(request.build()))

    def list_queue_consumer_registrations(self, *, queue_path: str) -> list[dict[str, Any]]:
        request = self._builder("ListQueueConsumerRegistrations")
        request = request.setQueuePath(self._path(queue_path))
        found = self._joined(self._client.listQueueConsumerRegistrations(request.build()))
        return [
            {"consumer_path": str(known.getConsumerPath().justPath().toString())}
            for known in found.getQueueConsumerRegistrations()
        ]

    def advance_queue_consumer(
        self, consumer: str, path: str, partition: int, old: int, new: int
    ) -> None:
        request = self._builder("AdvanceConsumer").setConsumerPath(self._path(consumer))
        request = request.setQueuePath(self._path(path)).setPartitionIndex(partition)
        request = request.setOldOffset(self._long(old)).setNewOffset(new)
        with self._tablet_transaction() as transaction:
            self._joined(transaction.advanceConsumer(request.build()))

    def create_queue_producer_session(self, *_: Any) -> Any:
        raise LacksError("producers")

    push_queue_producer = remove_queue_producer_session = create_queue_producer_session

    # Java

    def _find(self, name: str) -> Any:
        return reduce(getattr, name.split("."), self._java)

    def _class(self, name: str) -> Any:
        return self._find(f"{REQUEST}.{name}")

    def _builder(self, name: str) -> Any:
        return self._class(name).builder()

    def _enum(self, name: str, value: str) -> Any:
        for item in self._find(name).values():
            if item.value() == value:
                return item
        raise LacksError(f"objects of type {value}")

    def _long(self, number: int) -> Any:
        return self._java.java.lang.Long.valueOf(str(number))

    def _timestamp(self, value: int) -> Any:
        return self._java.tech.ytsaurus.core.YtTimestamp.valueOf(value)

    def _path(self, path: str | None) -> Any:
        if path is None:
            raise LacksError("objects without a path")
        return self._java.tech.ytsaurus.core.cypress.YPath.simple(path)

    def _rich(self, path: Any) -> Any:
        """Return a path with the attributes that it has: append, ranges."""
        made = self._path(str(path))
        given = getattr(path, "attributes", {})
        if given.get("append"):
            made = made.append(True)
        for limits in given.get("ranges", ()):
            ends = [limits[name]["row_index"] for name in ("lower_limit", "upper_limit")]
            made = made.withRange(*ends)
        return made

    def _node(self, value: object) -> Any:
        text = yson.dumps(value, yson_format="text").decode("latin-1")
        return self._java.tech.ytsaurus.ysontree.YTreeTextSerializer.deserialize(text)

    def _value(self, node: Any) -> Any:
        text = self._java.tech.ytsaurus.ysontree.YTreeTextSerializer.serialize(node)
        return yson.loads(text.encode())

    def _look(self, request: str, path: str, attributes: list[str] | None) -> Any:
        made = self._builder(request).setPath(self._path(path))
        return made if attributes is None else made.setAttributes(attributes)

    def _list(self, values: list[Any]) -> Any:
        return self._node(values).asList()

    def _row(self, schema: Any, row: Mapping[str, Any]) -> Any:
        """Return a row of a static table."""
        made = self._find(f"{ROWS}.UnversionedRowDeserializer")()
        made.onNewRow(len(row))
        for name, value in row.items():
            place = schema.findColumn(name)
            made.setId(place)
            made.setType(self._find(f"{TYPE}.NULL") if value is None else schema.getColumnType(place))
            if value is None:
                made.onEntity()
            elif isinstance(value, int):
                made.onInteger(value)
            else:
                made.onBytes(value.encode())
            made.build()
        return made.onCompleteRow()

    def _schema(self, path: str) -> Any:
        found = self._node(self.get(f"{path}/@schema"))
        return self._java.tech.ytsaurus.core.tables.TableSchema.fromYTree(found)

    # Requests

    def _joined(self, future: Any) -> Any:
        try:
            return future.join()
        except Py4JJavaError as error:
            raise _error(error) from error

    def _ask(self, method: str, builder: Any) -> Any:
        """Call a method that a master transaction has as well."""
        masters = [it for it in self._current if not it.isSticky()]
        target = masters[-1] if masters else self._client
        return self._joined(getattr(target, method)(builder.build()))

    def _table(self, method: str, request: str, path: str) -> None:
        built = self._class(request)(self._path(path))
        self._joined(getattr(self._client, method)(built))

    @contextmanager
    def _tablet_transaction(self) -> Iterator[Any]:
        """Yield the transaction that the caller is in, or one of this call."""
        if self._current:
            yield self._current[-1]
            return
        name = self.start_transaction(type="tablet")
        yield self._transactions[name]
        self.commit_transaction(name)

    def _modify(self, path: str, add: str, rows: Sequence[Mapping[str, Any]]) -> None:
        columns = [*self.get(f"{path}/@schema")]
        if any(TABLET_INDEX in row for row in rows):
            columns.append({"name": TABLET_INDEX, "type": "int64"})
        schema = self._java.tech.ytsaurus.core.tables.TableSchema.fromYTree(self._node(columns))
        request = self._builder("ModifyRowsRequest").setPath(path).setSchema(schema.toWrite())
        for row in rows:
            request = getattr(request, add)(self._node(dict(row)).asMap())
        with self._tablet_transaction() as transaction:
            try:
                future = transaction.modifyRows(request.build())
            except Py4JJavaError as error:
                if "Illegal value" in str(error):
                    raise LacksError("a value of a wrong type: it refuses it by itself") from error
                raise
            self._joined(future)

    def _found(self, future: Any) -> list[Any]:
        rows = self._joined(future).getYTreeRows()
        return [None if row is None else self._value(row) for row in rows]

    def _pulled(
        self, method: str, request: Any, offset: int, partition: int, count: int
    ) -> list[Any]:
        options = self._builder("RowBatchReadOptions").setMaxRowCount(count).build()
        request = request.setOffset(self._long(offset)).setPartitionIndex(partition)
        asked = request.setRowBatchReadOptions(options).build()
        return self._found(getattr(self._client, method)(asked))


def _error(error: Py4JJavaError) -> Exception:
    """Return the cluster's error; the Java client's own as it is."""
    text = str(error)
    found = re.search(r"full error: (\{.*\})", text)
    if found is None:
        return error
    return _of(yson.loads(found[1].encode()))


def _of(found: Any) -> yt.YtError:
    inner = [_of(item) for item in found.get("inner_errors", ())]
    return yt.YtError(str(found["message"]), code=int(found["code"]), inner_errors=inner)


