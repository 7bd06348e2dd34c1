"""The status attributes of queues and consumers, computed from the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yt import yson

from ..core.clock import Clock, iso
from ..core.errors import YtError, generic
from ..cypress.model import Node
from ..rows import wire
from ..rows.schema import DATA_WEIGHT, TableSchema
from ..tables.commands import Tables
from ..tables.ordered import OrderedData, data_weight
from ..tables.table import UNMOUNTED, Table
from .consumers import Consumers

Report = list[dict[str, Any]]

_RATE = {"current": 0.0, "1m_raw": 0.0, "1m": 0.0, "1h": 0.0, "1d": 0.0}  # model: not measured


def reports(node: Node, name: str) -> bool:
    """Return whether the agent reports this attribute: a queue's, or a marked consumer's."""
    table = node.payload
    if not isinstance(table, Table) or not table.dynamic:
        return False
    if name.startswith("queue_consumer"):
        return table.sorted and bool(node.attributes.get("treat_as_queue_consumer"))
    return table.ordered


class Reporter:
    """Computes the attributes as they are now."""

    def __init__(
        self, cluster_name: str, clock: Clock, tables: Tables, consumers: Consumers
    ) -> None:
        self._cluster_name = cluster_name
        self._clock = clock
        self._tables = tables
        self._consumers = consumers

    def report(self, node: Node, name: str) -> Any:
        return REPORTS[name](self, node, node.payload)

    def _queue_partitions(self, node: Node, table: Table) -> Report:
        """Return `@queue_partitions`; a partition that is not mounted has an `error` alone."""
        now = self._clock.now()
        result: Report = []
        for tablet in table.tablets:
            if tablet.state == UNMOUNTED:
                error = generic(
                    f"Tablet {tablet.id} is not mounted or frozen", state=str(tablet.state)
                )
                result.append({"error": error.to_dict()})
                continue
            data = tablet.data
            last = data.last_commit
            result.append(
                {
                    "lower_row_index": data.trimmed,
                    "upper_row_index": data.total,
                    "available_row_count": len(data.rows),
                    "last_row_commit_time": _time(last),
                    "commit_idle_time": int((now - (last >> 30)) * 1000),
                    **_weights(table.schema, data),
                    "write_row_count_rate": _RATE,
                    "write_data_weight_rate": _RATE,
                    "meta": {"cell_id": self._tables.cell_of(tablet), "host": "localhost"},
                }
            )
        return result

    def _registrations(self, **of: str) -> list[dict[str, Any]]:
        return [
            {
                "queue": f"{self._cluster_name}:{registration.queue}",
                "consumer": f"{self._cluster_name}:{registration.consumer}",
                "vital": registration.vital,
            }
            for registration in self._consumers.registrations(**of)
        ]

    def _queue_status(self, node: Node, table: Table) -> dict[str, Any]:
        config = node.attributes.get("auto_trim_config") or {}
        columns = {column.name for column in table.schema.columns}
        return {
            "family": "ordered_dynamic_table",
            "partition_count": len(table.tablets),
            "has_timestamp_column": "$timestamp" in columns,
            "has_cumulative_data_weight_column": DATA_WEIGHT in columns,
            "write_row_count_rate": _RATE,
            "write_data_weight_rate": _RATE,
            "registrations": self._registrations(queue=node.path),
            "alerts": {},
            "auto_trim_enabled": bool(config.get("enable")),
            "exports": {"progress": {}},
            "queue_agent_host": "queue-agent.minicluster",
            "pass_index": yson.YsonUint64(0),
        }

    def _consumer_status(self, node: Node, table: Table) -> dict[str, Any]:
        queues: dict[str, dict[str, Any]] = {}
        for registration in self._consumers.registrations(consumer=node.path):
            try:
                _, queue = self._tables.ordered(registration.queue)
            except YtError as error:
                queues[f"{self._cluster_name}:{registration.queue}"] = {"error": error.to_dict()}
                continue
            queues[f"{self._cluster_name}:{registration.queue}"] = {
                "partition_count": len(queue.tablets),
                "read_row_count_rate": _RATE,
                "read_data_weight_rate": _RATE,
            }
        return {
            "registrations": self._registrations(consumer=node.path),
            "queues": queues,
            "queue_agent_host": "queue-agent.minicluster",
        }

    def _consumer_partitions(self, node: Node, table: Table) -> dict[str, Report]:
        now = self._clock.now()
        result: dict[str, Any] = {}
        for registration in self._consumers.registrations(consumer=node.path):
            name = f"{self._cluster_name}:{registration.queue}"
            try:
                _, queue = self._tables.ordered(registration.queue)
            except YtError as error:
                result[name] = {"error": error.to_dict()}
                continue
            partitions: Report = []
            for index, tablet in enumerate(queue.tablets):
                following = self._consumers.offset(table, registration.queue, index)
                unread = tablet.data.total - following
                commit = tablet.data.commit_timestamp(following)
                consumed = self._consumers.last_consumed(table, registration.queue, index)
                partitions.append(
                    {
                        "next_row_index": following,
                        "unread_row_count": unread,
                        "next_row_commit_time": _time(commit) if commit else yson.YsonEntity(),
                        "processing_lag": int((now - (commit >> 30)) * 1000) if commit else 0,
                        "last_consume_time": _time(consumed),
                        "consume_idle_time": int((now - (consumed >> 30)) * 1000),
                        "disposition": _disposition(unread, following, tablet.data.trimmed),
                        "read_row_count_rate": _RATE,
                        "read_data_weight_rate": _RATE,
                    }
                )
            result[name] = partitions
        return result


REPORTS: dict[str, Callable[[Reporter, Node, Table], Any]] = {
    "queue_partitions": Reporter._queue_partitions,
    "queue_status": Reporter._queue_status,
    "queue_consumer_status": Reporter._consumer_status,
    "queue_consumer_partitions": Reporter._consumer_partitions,
}


def _time(timestamp: int) -> str:
    return iso(float(timestamp >> 30))


def _weights(schema: TableSchema, data: OrderedData) -> dict[str, Any]:
    """Return the weights of all rows, of the trimmed ones, and of those that are left.

    They follow from `$cumulative_data_weight`: all are entities without the column or any row.
    """
    column = next((i for i, each in enumerate(schema.columns) if each.name == DATA_WEIGHT), None)
    total: Any = data.data_weight
    trimmed: Any = total
    if column is None or not data.total:
        total = trimmed = yson.YsonEntity()
    elif len(data.rows):
        (first,) = data.rows[:1]
        upto: Any = next(value for index, _, value in wire.values(first) if index == column)
        trimmed = upto - data_weight(first)
    left = yson.YsonEntity() if isinstance(total, yson.YsonEntity) else total - trimmed
    return {
        "cumulative_data_weight": total,
        "trimmed_data_weight": trimmed,
        "available_data_weight": left,
    }


def _disposition(unread: int, following: int, trimmed: int) -> str:
    """Return the queue agent's name for it (`EConsumerPartitionDisposition`)."""
    if following < trimmed:
        return "expired"
    if unread < 0:
        return "ahead"
    return "pending_consumption" if unread else "up_to_date"
