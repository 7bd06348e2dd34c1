"""A folder with the queues, consumers and outputs of a test, and the queries that run on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from yt.yson import to_yson_type

from packages.minicluster.tests.support.spyt_lab import Lab

Row = dict[str, Any]

TABLETS = 3
COLUMNS = [
    {"name": "id", "type": "int64"},
    {"name": "half", "type": "double"},
    {"name": "text", "type": "string"},
]
CONSUMER = [
    {"name": "queue_cluster", "type": "string", "sort_order": "ascending", "required": True},
    {"name": "queue_path", "type": "string", "sort_order": "ascending", "required": True},
    {"name": "partition_index", "type": "uint64", "sort_order": "ascending", "required": True},
    {"name": "offset", "type": "uint64", "required": True},
]


def identity(row: Row) -> int:
    """Return what tells rows apart: each table whose rows are compared has a column `id`."""
    return int(row["id"])


@dataclass
class Stage:
    """A folder on the cluster: its tables, and the queries that run on them."""

    lab: Lab
    folder: str
    running: list[str] = field(default_factory=list)

    def table(
        self, name: str, columns: list[Row] | None = None, tablets: int = TABLETS, **more: Any
    ) -> str:
        """Make and mount a dynamic table; a sorted one gets one tablet and unique keys."""
        path, columns = f"{self.folder}/{name}", columns or COLUMNS
        keyed = "sort_order" in columns[0]
        schema = to_yson_type(columns, attributes={"strict": True, "unique_keys": keyed})
        more |= {"dynamic": True, "schema": schema, "enable_dynamic_store_read": True}
        more |= {} if keyed else {"tablet_count": tablets}
        self.lab.yt.create("table", path, recursive=True, attributes=more)
        self.lab.yt.mount_table(path, sync=True)
        return path

    def consumer(self, *queues: str, name: str = "consumer") -> str:
        """Make a consumer as SPYT's tests do: a table with the columns of one."""
        path = self.table(name, CONSUMER, treat_as_queue_consumer=True)
        for queue in queues:
            self.lab.yt.register_queue_consumer(queue, path, vital=False)
        return path

    def put(self, queue: str, first: int, last: int, tablets: int = TABLETS) -> None:
        """Put the rows first..last-1 into a queue, spread over its tablets, ten in a call."""
        for start in range(first, last, 10):
            rows = [
                {"id": n, "half": n / 2, "text": f"row {n}", "$tablet_index": n % tablets}
                for n in range(start, min(start + 10, last))
            ]
            self.lab.yt.insert_rows(queue, rows)

    def start(self, name: str, *, consumer: str | None = None, **arguments: Any) -> None:
        """Start a query that ends with the test."""
        arguments.setdefault("checkpoint", f"{self.folder}/checkpoints/{name}")
        if consumer:
            arguments["reading"] = {"consumer_path": consumer} | arguments.get("reading", {})
        self.lab.worker.ask("start", name=name, **arguments)
        self.running.append(name)

    def drain(self, *names: str) -> None:
        """Wait until each query has processed all that is there now."""
        for name in names:
            self.lab.worker.ask("drain", name=name)

    def stop(self, *names: str) -> None:
        for name in names:
            self.running.remove(name)
            self.lab.worker.ask("stop", name=name)

    def rows(self, path: str) -> list[Row]:
        """Return a table's rows in the order of their ids, without service columns."""
        rows = self.lab.yt.select_rows(f"* from [{path}]")
        names = [column["name"] for column in self.lab.yt.get(f"{path}/@schema")]
        return sorted(({name: row[name] for name in names} for row in rows), key=identity)

    def positions(self, queue: str) -> dict[int, int]:
        """Return the number of rows in each tablet that has any."""
        rows = self.lab.yt.select_rows(f"[$tablet_index] as tablet from [{queue}]")
        return dict(Counter(row["tablet"] for row in rows))

    def offsets(self, consumer: str, queue: str) -> dict[int, int]:
        """Return where a consumer is in each tablet of a queue that it has moved in."""
        rows = self.lab.yt.select_rows(f'* from [{consumer}] where queue_path = "{queue}"')
        return {row["partition_index"]: row["offset"] for row in rows}
