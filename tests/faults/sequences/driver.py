"""The simulated driver of a sequence: the runtime's own steps, and those of Spark and SPYT between.

What a batch reads, where it begins and when the consumer moves follows SPYT: under `transactional`
each batch begins at the consumer; elsewhere where the last one ended, unless the consumer is ahead
in any partition when the query starts, and the consumer is moved a batch late, without a look at
where it is (YtStreamingSource.commit). Rows are read by number and counted, as SPYT does. Our own
connector differs in two things: under `transactional` a batch begins where the last one has moved
the consumer, and elsewhere it never moves the consumer (connector/jvm/Offsets.java).
"""

from __future__ import annotations

import json
import math
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from tests.faults.sequences.inside import DeathError, InsideTransaction
from tests.support.simulated_driver import (
    SimulatedDriver,
    offsets_text,
    pairs,
    runtime,
    spans,
)
from ytstream.cluster.client import cluster_name
from ytstream.connector.transform_plan import observed_name
from ytstream.ledger import positions
from ytstream.ledger.batch_commit import moved
from ytstream.ledger.ledger_rows import BatchRow, batch_name
from ytstream.outputs.static_outputs import StaticTables
from ytstream.recovery import spark_logs
from ytstream.recovery import start as before_start
from ytstream.schema.columns import key_of
from ytstream.schema.table_schema import table_schema
from ytstream.settings.job_settings import OWN
from ytstream.staging import staged_tables

KEYS, BAD, BAD_REST = 3, 4, 3
"""An aggregate has so many keys; a row whose number leaves BAD_REST is rejected."""


@dataclass(frozen=True, order=True)
class Row:
    """One row of a queue."""

    queue: str
    partition: int
    index: int
    id: int


@dataclass
class Query:
    """A running query's memory, as far as it decides what is read."""

    number: int
    """The folder's last planned batch; -1: none."""
    is_again: bool
    """It was planned and is not in the commit log."""
    begins: list[dict[int, int]]
    """Where the next batch begins without a transaction; by queue."""
    static_tables: StaticTables
    has_moved: bool = False
    """Whether a batch of this query has moved the consumer in its transaction."""


@dataclass
class Driver(SimulatedDriver):
    """A process of the job with the declaration and the configuration that it was started with."""

    query: Query | None = None
    has_begun: bool = False
    """Whether a start of this process was committed, and no query has ended since."""

    @property
    def _is_own(self) -> bool:
        """Whether it runs on the runtime's own connector: see connector/jvm/Offsets.java."""
        return self.settings.connector == OWN

    def start(self) -> None:
        """Commit a start, as the supervisor does."""
        self.query, self.has_begun = None, False
        self.epoch = before_start.claim(self.context, self.tablets, self.epoch)
        before_start.start(self.context, self.tablets, self.epoch)
        self.has_begun = True

    def batch(self) -> bool:
        """Run one batch, the query's start before it; return whether there was one to run."""
        try:
            self.query = self.query or self._look()
            planned = self._plan(self.query)
            if planned is None:
                return False
            self._run(self.query, *planned)
        except DeathError:
            raise
        except BaseException:
            self.query, self.has_begun = None, False
            raise
        return True

    def publish(self) -> None:
        """Publish as the thread that follows the query does."""
        if self.query is not None and self.context.job.static:
            self.query.static_tables.publish(self.client, self.settings, math.inf)

    # -- the query's start, and the plan of a batch ----------------------------------------------

    def _look(self) -> Query:
        """Start the query: SPYT looks at the consumer, Spark at its logs."""
        static_tables = StaticTables(self.epoch)
        if self.context.job.static:
            static_tables.settle(self.client, self.settings)
        offsets = spark_logs.numbers(self.client, f"{self.folder}/offsets")
        commits = spark_logs.numbers(self.client, f"{self.folder}/commits")
        consumed = self._consumed()
        if not offsets:
            return Query(-1, False, consumed, static_tables)
        number = offsets[-1]
        is_again = number not in commits
        before = number - 1 if is_again else number
        begins = [*map(dict, self.ends_of(before))] if before in offsets else consumed
        is_ahead = any(
            row > begin.get(partition, 0)
            for begin, rows in zip(begins, consumed, strict=True)
            for partition, row in rows.items()
        )
        return Query(number, is_again, consumed if is_ahead else begins, static_tables)

    def _plan(self, query: Query) -> tuple[int, list[dict[int, int]]] | None:
        """Return number and ends of the next batch; None when there is nothing to read."""
        # Our own connector goes on where the last batch has moved the consumer, and does not ask.
        if self.in_transaction and not (self._is_own and query.has_moved):
            query.begins = self._consumed()
        if query.is_again:
            return query.number, [*map(dict, self.ends_of(query.number))]
        queues = self.settings.queues
        ends = [self._upper(path, begin) for path, begin in zip(queues, query.begins, strict=True)]
        last = self.ends_of(query.number) if query.number >= 0 else [{} for _ in ends]
        if all(
            row <= max(begin.get(partition, 0), was.get(partition, 0))
            for begin, was, end in zip(query.begins, last, ends, strict=True)
            for partition, row in end.items()
        ):
            return None
        number = query.number + 1
        self._write(f"offsets/{number}", offsets_text(ends), new=True)
        if number and not self._is_own and not self.in_transaction:
            self.confirm(last)
        query.number, query.is_again = number, True
        return number, ends

    def _upper(self, path: str, begins: Mapping[int, int]) -> dict[int, int]:
        count = int(self.client.get(f"{path}/@tablet_count"))
        infos = self.client.get_tablet_infos(path, range(count))["tablets"]
        return {
            p: max(
                begin,
                min(begin + self.settings.max_rows_per_partition, int(info["total_row_count"])),
            )
            for p, info in enumerate(infos)
            for begin in [begins.get(p, 0)]
        }

    def _consumed(self) -> list[dict[int, int]]:
        found = positions.consumed(
            self.client.select_rows, cluster_name(self.client), self.settings.consumer
        )
        return [dict(found.get(path, {})) for path in self.settings.queues]

    # -- the batch -------------------------------------------------------------------------------

    def _run(self, query: Query, number: int, ends: list[dict[int, int]]) -> None:
        is_exact, settings = self.in_transaction, self.settings
        transaction = InsideTransaction(self.client.inside) if is_exact else None
        try:
            self._write_batch(query, number, ends, transaction)
            self._write(f"commits/{number}", 'v1\n{"nextBatchWatermarkMs":0}', new=True)
            if transaction is not None:
                for path, rows in zip(settings.queues, ends, strict=True):
                    transaction.advance_all(settings.consumer, path, rows)
                transaction.commit()
        except DeathError:
            raise
        except BaseException:
            if transaction is not None:
                transaction.abort()
                for later in spark_logs.numbers(self.client, f"{self.folder}/commits"):
                    if later >= number:
                        self.client.remove(f"{self.folder}/commits/{later}")
            raise
        query.is_again, query.begins, query.has_moved = False, ends, is_exact

    def _write_batch(
        self,
        query: Query,
        number: int,
        ends: list[dict[int, int]],
        transaction: InsideTransaction | None,
    ) -> None:
        """Do what query/batch.py does in a batch; Spark's part is played on plain rows."""
        context, client, settings, begins = self.context, self.client, self.settings, query.begins
        select = transaction.select if transaction else client.select_rows
        cluster, started = cluster_name(client), datetime.now(UTC)
        reads = spans(begins, ends)
        head, planned = self.verified(select, cluster, number, ends, reads)
        rows = [
            row
            for path, begin, end in zip(settings.queues, begins, ends, strict=True)
            for partition, upper in end.items()
            for row in self._pull(path, partition, begin.get(partition, 0), upper)
        ]
        state = self._next_state(number, rows)
        self._write_outputs(query, number, rows, state, transaction)
        self.publish()  # the other thread does so at any time
        if context.job.kind.is_stateful:
            self._write(f"state/0/0/{number + 1}.delta", json.dumps(state))
        read = Counter(row.queue for row in rows)
        sums = Counter[str]()
        for row in rows:
            sums[row.queue] += row.index
        metrics = {
            observed_name(path): (read[path], sums[path] if read[path] else None)
            for path in settings.queues
        }
        name = batch_name(self.epoch.number, number)
        runtime.audit(client, name, planned, metrics)
        columns = context.job.queue_columns
        head = replace(head, layouts=runtime.verify_queues(client, name, head, planned, columns))
        tables = query.static_tables.tables(number)
        written = {"output": len(rows)}
        done = BatchRow(pairs(planned), written, started, datetime.now(UTC), tables)
        self.record(transaction, cluster, moved(head, number, planned), done)

    def _pull(self, path: str, partition: int, begin: int, end: int) -> list[Row]:
        """Return as many rows as lie between ``begin`` and ``end``, from ``begin`` or later on."""
        if end <= begin:
            return []
        found = self.client.inside.call(
            "pull_queue",
            queue_path=path,
            partition_index=partition,
            offset=begin,
            max_row_count=end - begin,
        )
        return [Row(path, partition, int(row["$row_index"]), int(row["id"])) for row in found]

    def _next_state(self, number: int, rows: Sequence[Row]) -> list[int]:
        if not self.context.job.kind.is_stateful or number == 0:
            return [row.id for row in rows]
        text = self.client.read_file(f"{self.folder}/state/0/0/{number}.delta").read()
        return [*json.loads(text), *(row.id for row in rows)]

    def _write_outputs(
        self,
        query: Query,
        number: int,
        rows: Sequence[Row],
        state: Sequence[int],
        transaction: InsideTransaction | None,
    ) -> None:
        job, settings = self.context.job, self.settings
        good = [row for row in rows if not (job.reject and row.id % BAD == BAD_REST)]
        parts: dict[str, list[dict[str, Any]]] = {
            "output": [{"id": row.id} for row in good],
            "rejected": [
                {**self._position(row), "reason": "bad", "time": 0, "row": str(row.id)}
                for row in rows
                if row not in good
            ],
        }
        if job.processing == "aggregate":
            changed = {row.id % KEYS for row in rows}
            totals = [(k, sum(id for id in state if id % KEYS == k)) for k in sorted(changed)]
            parts = {
                "output": [{"k": k, "total": total} for k, total in totals],
                "read": [{"id": row.id} for row in good],
            }
        elif job.guarantee == "idempotent" and not job.static:
            parts["output"] = [{**self._position(row), "id": row.id} for row in good]
        for name in job.outputs:
            if name in job.static:
                self._shelve(query, number, name, parts[name])
            elif parts[name]:  # in two requests: a driver may die between them
                half = (len(parts[name]) + 1) // 2
                for some in filter(None, (parts[name][:half], parts[name][half:])):
                    if transaction is not None:
                        columns = job.output_columns[name]
                        transaction.modify(settings.outputs[name], columns, some)
                    else:
                        self.client.insert_rows(settings.outputs[name], some)

    def _shelve(self, query: Query, number: int, name: str, rows: list[dict[str, Any]]) -> None:
        """Write a table aside, as outputs/static_outputs.py does."""
        if not rows:
            return
        table = staged_tables.StagedTable(name, self.epoch.number, number)
        path = table.path_in(self.settings)
        columns = self.context.job.output_columns[name]
        schema = table_schema(columns).to_yson_type()
        self.client.create("table", path, recursive=True, attributes={"schema": schema})
        self.client.write_table(path, rows)
        query.static_tables._written[table] = f"{self.settings.outputs[name]}/{table.name}"

    def _write(self, name: str, text: str, *, new: bool = False) -> None:
        """Write a file of the checkpoint as Spark does: aside, then moved into its place.

        An entry of a log that is there already is an error.
        """
        folder, _, last = f"{self.folder}/{name}".rpartition("/")
        aside = f"{folder}/.{last}.{uuid.uuid4().hex[:8]}.tmp"
        self.client.write_file(aside, text.encode(), force_create=True)
        self.client.move(aside, f"{folder}/{last}", force=not new)

    def _position(self, row: Row) -> dict[str, Any]:
        """Return the key of the row's place, with the queue where the table has it."""
        columns = {"queue_id": row.queue, "tablet_index": row.partition, "row_index": row.index}
        name = "rejected" if self.context.job.reject else "output"
        key = key_of(self.context.job.output_columns[name])
        return {column: columns[column] for column in key}
