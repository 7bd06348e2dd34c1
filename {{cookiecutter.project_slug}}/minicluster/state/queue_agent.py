"""The queue agent: what it reports about queues and consumers, and the trimming it does.

A real one looks round every few seconds, so its attributes lag behind the tables. Here `delay` says
how long a look stays valid; 0, the default, means that every answer is fresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yt import yson

from ..clock import iso
from ..errors import YtError, generic
from .branches import MISSING
from .ordered import OrderedData
from .tablets import UNMOUNTED, Table, cell_of

if TYPE_CHECKING:
    from .cluster import Cluster
    from .nodes import Node

Report = list[dict[str, Any]]


class QueueAgent:
    """`cluster.queues.agent`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.delay = 0.0
        """Seconds between two looks; 0 for none."""
        self._looked = 0.0
        self._trimmed_at = 0
        self._seen: dict[tuple[str, str], Any] = {}
        """(node id, attribute) -> value at the last look."""

    def tick(self) -> None:
        """A look round, when one is due."""
        now = self._cluster.clock.now()
        if self.delay and now < self._looked + self.delay:
            return
        self._looked = now
        self._seen.clear()
        if self._trimmed_at != self._cluster.tablet_transactions.last_commit:
            self._trimmed_at = self._cluster.tablet_transactions.last_commit
            self._trim()
        if self.delay:
            for node in self._cluster.cypress.nodes.values():
                for name in REPORTS:
                    if reports(node, name):
                        self._seen[node.id, name] = REPORTS[name](self._cluster, node, node.payload)

    def wake(self) -> None:
        """Something that governs trimming has changed: look again even if no row has."""
        self._trimmed_at = 0

    def report(self, node: Node, name: str) -> Any:
        """A status attribute, as of the last look; MISSING when the node is no such object."""
        if not reports(node, name):
            return MISSING
        if not self.delay:
            return REPORTS[name](self._cluster, node, node.payload)
        if (node.id, name) not in self._seen:
            raise generic(f'Object "{node.path}" is not mapped to any queue agent')
        return self._seen[node.id, name]

    def _trim(self) -> None:
        """Trims queues up to the slowest vital consumer (documentation, "queues", trimming)."""
        queues = self._cluster.queues
        for path in {registration.queue for registration in queues.registrations()}:
            try:
                node, table = self._cluster.tables.ordered(path)
            except YtError:
                continue
            config = node.attributes.get("auto_trim_config") or {}
            if not config.get("enable"):
                continue
            for index, tablet in enumerate(table.tablets):
                if tablet.state == UNMOUNTED:
                    continue
                offsets = [
                    self._offset(registration.consumer, path, index)
                    for registration in queues.registrations(queue=path)
                    if registration.vital
                    and (registration.partitions is None or index in registration.partitions)
                ]
                if offsets:
                    tablet.data.trim(self._retained(tablet.data, min(offsets), config))

    def _offset(self, consumer: str, queue: str, partition: int) -> int:
        """Where a vital consumer stands; one that is gone or broken holds everything back."""
        try:
            _, table = self._cluster.queues.consumer(consumer)
        except YtError:
            return 0
        return self._cluster.queues.offset(table, queue, partition)

    def _retained(self, data: OrderedData, end: int, config: dict[str, Any]) -> int:
        """`end` moved back so that what the configuration retains stays."""
        if config.get("retained_rows") is not None:
            end = min(end, data.total - int(config["retained_rows"]))
        if config.get("retained_lifetime_duration") is not None:
            # Compared in whole seconds, which is what a timestamp holds; the documentation asks for
            # multiples of 1000 ms.
            oldest = self._cluster.clock.now() - config["retained_lifetime_duration"] / 1000
            old = data.trimmed
            for timestamp, after in data.commits:
                if timestamp >> 30 >= oldest:
                    break
                old = after
            end = min(end, old)
        return end


def reports(node: Node, name: str) -> bool:
    """Queues are ordered dynamic tables; consumers are marked as such."""
    table = node.payload
    if not isinstance(table, Table) or not table.dynamic:
        return False
    if name.startswith("queue_consumer"):
        return table.sorted and bool(node.attributes.get("treat_as_queue_consumer"))
    return table.ordered


def _time(timestamp: int) -> str:
    return iso(float(timestamp >> 30))


def _queue_partitions(cluster: Cluster, node: Node, table: Table) -> Report:
    """`@queue_partitions`; a partition that is not mounted has an `error` and nothing else."""
    now = cluster.clock.now()
    result: Report = []
    for index, tablet in enumerate(table.tablets):
        if tablet.state == UNMOUNTED:
            error = generic(f'Tablet {tablet.id} is in "{tablet.state}" state')
            result.append({"error": error.to_dict(), "partition_index": index})
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
                "cumulative_data_weight": data.data_weight,
                "trimmed_data_weight": 0,
                "write_row_count_rate": _RATE,
                "write_data_weight_rate": _RATE,
                "cell_id": cell_of(cluster, tablet),
            }
        )
    return result


_RATE = {"current": 0.0, "1m_raw": 0.0, "1m": 0.0, "1h": 0.0, "1d": 0.0}  # model: not measured


def _registrations(cluster: Cluster, **of: str) -> list[dict[str, Any]]:
    return [
        {
            "queue": f"{cluster.name}:{registration.queue}",
            "consumer": f"{cluster.name}:{registration.consumer}",
            "vital": registration.vital,
            "partitions": registration.partitions,
        }
        for registration in cluster.queues.registrations(**of)
    ]


def _queue_status(cluster: Cluster, node: Node, table: Table) -> dict[str, Any]:
    config = node.attributes.get("auto_trim_config") or {}
    columns = {column.name for column in table.schema.columns}
    return {
        "family": "ordered_dynamic_table",
        "partition_count": len(table.tablets),
        "has_timestamp_column": "$timestamp" in columns,
        "has_cumulative_data_weight_column": "$cumulative_data_weight" in columns,
        "write_row_count_rate": _RATE,
        "write_data_weight_rate": _RATE,
        "registrations": _registrations(cluster, queue=node.path),
        "alerts": {},
        "auto_trim_enabled": bool(config.get("enable")),
        "queue_agent_host": "queue-agent.minicluster",
        "pass_index": yson.YsonUint64(0),
    }


def _consumer_status(cluster: Cluster, node: Node, table: Table) -> dict[str, Any]:
    queues: dict[str, dict[str, Any]] = {}
    for registration in cluster.queues.registrations(consumer=node.path):
        try:
            _, queue = cluster.tables.ordered(registration.queue)
        except YtError as error:
            queues[f"{cluster.name}:{registration.queue}"] = {"error": error.to_dict()}
            continue
        queues[f"{cluster.name}:{registration.queue}"] = {
            "vital": registration.vital,
            "owner": "root",
            "partition_count": len(queue.tablets),
            "read_row_count_rate": _RATE,
            "read_data_weight_rate": _RATE,
        }
    return {
        "target": node.path,
        "registrations": _registrations(cluster, consumer=node.path),
        "queues": queues,
        "queue_agent_host": "queue-agent.minicluster",
    }


def _consumer_partitions(cluster: Cluster, node: Node, table: Table) -> dict[str, Report]:
    now = cluster.clock.now()
    result: dict[str, Any] = {}
    for registration in cluster.queues.registrations(consumer=node.path):
        name = f"{cluster.name}:{registration.queue}"
        try:
            _, queue = cluster.tables.ordered(registration.queue)
        except YtError as error:
            result[name] = {"error": error.to_dict()}
            continue
        partitions: Report = []
        for index, tablet in enumerate(queue.tablets):
            following = cluster.queues.offset(table, registration.queue, index)
            unread = tablet.data.total - following
            commit = tablet.data.commit_timestamp(following)
            consumed = cluster.queues.last_consumed(table, registration.queue, index)
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


def _disposition(unread: int, following: int, trimmed: int) -> str:
    """Names of the queue agent's `EConsumerPartitionDisposition`."""
    if following < trimmed:
        return "expired"
    if unread < 0:
        return "ahead"
    return "pending_consumption" if unread else "up_to_date"


REPORTS: dict[str, Any] = {
    "queue_partitions": _queue_partitions,
    "queue_status": _queue_status,
    "queue_consumer_status": _consumer_status,
    "queue_consumer_partitions": _consumer_partitions,
}
