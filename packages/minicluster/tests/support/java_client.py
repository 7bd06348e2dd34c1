"""The Java client, by which Spark reaches a cluster, under the names of `yt.wrapper.YtClient`.

The basics (`basics.py`) are written against the latter. Each call here is one or two of the Java
client's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from yt import yson

from packages.minicluster.tests.support.java_cypress import JavaCypress
from packages.minicluster.tests.support.java_values import Java, LacksError, joined, jvm

TABLET_INDEX = "$tablet_index"


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
            yield JavaClient(Java(java), client)
        finally:
            client.close()


class JavaClient(JavaCypress):
    """All calls. Raises YtError with the cluster's codes, LacksError for what the client lacks."""

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
        request = self._java.builder("ReshardTable").setPath(self._java.path(path))
        if tablet_count is not None:
            request = request.setTabletCount(tablet_count)
        if pivot_keys is not None:
            request = request.setSchema(self._schema(path).toLookup())
            for key in pivot_keys:
                request = request.addPivotKey(self._java.items(key))
        joined(self._client.reshardTable(request.build()))

    def alter_table(self, path: str, *, schema: list[dict[str, Any]]) -> None:
        request = self._java.builder("AlterTable").setPath(self._java.path(path))
        given = yson.to_yson_type(schema, attributes={"strict": True, "unique_keys": True})
        joined(self._client.alterTable(request.setSchema(self._java.node(given)).build()))

    def get_tablet_infos(self, path: str, tablets: list[int]) -> dict[str, Any]:
        found = joined(self._client.getTabletInfos(path, tablets))
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
        request = self._java.builder("LookupRowsRequest").setPath(path).setSchema(schema)
        request = request.setKeepMissingRows(keep_missing_rows)
        for name in column_names or ():
            request = request.addLookupColumn(name)
        for key in keys:
            request = request.addFilter(self._java.items([*key.values()]))
        if timestamp is not None:
            request = request.setTimestamp(self._java.timestamp(timestamp))
        return self._found(self._client.lookupRows(request.build()))

    def select_rows(self, query: str) -> list[Any]:
        return self._found(
            self._client.selectRows(self._java.request("SelectRowsRequest").of(query))
        )

    # Queues

    def pull_queue(
        self, path: str, *, offset: int, partition_index: int, max_row_count: int = 1000
    ) -> list[Any]:
        request = self._java.builder("PullQueue").setQueuePath(self._java.path(path))
        return self._pulled("pullQueue", request, offset, partition_index, max_row_count)

    def pull_queue_consumer(
        self, consumer: str, path: str, *, offset: int, partition_index: int
    ) -> list[Any]:
        request = self._java.builder("PullConsumer").setQueuePath(self._java.path(path))
        request = request.setConsumerPath(self._java.path(consumer))
        return self._pulled("pullConsumer", request, offset, partition_index, 1000)

    def trim_rows(self, path: str, tablet: int, count: int) -> None:
        joined(self._client.trimTable(path, tablet, self._java.long(count)))

    def register_queue_consumer(self, path: str, consumer: str, *, vital: bool) -> None:
        request = self._java.builder("RegisterQueueConsumer").setQueuePath(self._java.path(path))
        request = request.setConsumerPath(self._java.path(consumer)).setVital(vital)
        joined(self._client.registerQueueConsumer(request.build()))

    def unregister_queue_consumer(self, path: str, consumer: str) -> None:
        request = self._java.builder("UnregisterQueueConsumer").setQueuePath(self._java.path(path))
        request = request.setConsumerPath(self._java.path(consumer))
        joined(self._client.unregisterQueueConsumer(request.build()))

    def list_queue_consumer_registrations(self, *, queue_path: str) -> list[dict[str, Any]]:
        request = self._java.builder("ListQueueConsumerRegistrations")
        request = request.setQueuePath(self._java.path(queue_path))
        found = joined(self._client.listQueueConsumerRegistrations(request.build()))
        return [
            {"consumer_path": str(known.getConsumerPath().justPath().toString())}
            for known in found.getQueueConsumerRegistrations()
        ]

    def advance_queue_consumer(
        self, consumer: str, path: str, partition: int, old: int, new: int
    ) -> None:
        request = self._java.builder("AdvanceConsumer").setConsumerPath(self._java.path(consumer))
        request = request.setQueuePath(self._java.path(path)).setPartitionIndex(partition)
        request = request.setOldOffset(self._java.long(old)).setNewOffset(new)
        with self._tablet_transaction() as transaction:
            joined(transaction.advanceConsumer(request.build()))

    def create_queue_producer_session(self, *_: Any) -> Any:
        raise LacksError("producers")

    push_queue_producer = remove_queue_producer_session = create_queue_producer_session

    # Requests

    def _table(self, method: str, request: str, path: str) -> None:
        built = self._java.request(request)(self._java.path(path))
        joined(getattr(self._client, method)(built))

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
        schema = self._java.jvm.tech.ytsaurus.core.tables.TableSchema.fromYTree(
            self._java.node(columns)
        )
        request = self._java.builder("ModifyRowsRequest").setPath(path).setSchema(schema.toWrite())
        for row in rows:
            request = getattr(request, add)(self._java.node(dict(row)).asMap())
        with self._tablet_transaction() as transaction:
            try:
                future = transaction.modifyRows(request.build())
            except Py4JJavaError as error:
                if "Illegal value" in str(error):
                    raise LacksError(
                        "a value of a wrong type, which it refuses by itself"
                    ) from error
                raise
            joined(future)

    def _found(self, future: Any) -> list[Any]:
        rows = joined(future).getYTreeRows()
        return [None if row is None else self._java.value(row) for row in rows]

    def _pulled(
        self, method: str, request: Any, offset: int, partition: int, count: int
    ) -> list[Any]:
        options = self._java.builder("RowBatchReadOptions").setMaxRowCount(count).build()
        request = request.setOffset(self._java.long(offset)).setPartitionIndex(partition)
        asked = request.setRowBatchReadOptions(options).build()
        return self._found(getattr(self._client, method)(asked))
