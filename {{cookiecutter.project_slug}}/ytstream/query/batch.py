"""One micro-batch: checked against the ledger, written by SPYT's own sink, audited, entered.

Spark calls ``Batch`` for each micro-batch (foreachBatch). In a transactional job SPYT has opened a
tablet transaction before that call and commits it after ``commits/N`` was written, whatever the
sink is (MicroBatchExecutionDecorators.runBatch); its sink class finds the transaction in a variable
of the thread. So an exception here leaves nothing of the batch.

SPYT moves the consumer without asking where it stood (``advanceConsumer`` without an old offset),
and Spark's numbers mean nothing across checkpoints: what happened is what the head says.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError

from .. import ledger
from ..cluster import cluster_name, first_line
from ..errors import JobError, RestartableError
from ..job import REJECTED, Connection
from ..ledger import BatchRow, Head
from ..plan import observed_name
from ..recovery import checkpoint, snapshot
from ..recovery.epoch import Epoch, verify_epoch
from ..recovery.snapshot import Select, read_head
from ..tablets import Tablets, Transaction
from . import nulls
from .again import rejected_rows, write_rejected
from .audit import Ranges, audit, ends_of, metrics_of, ranges
from .left_out import LeftOut, left_out, verify_limit
from .outputs import Outputs
from .overflow import Overflow, explained
from .reading import reads, verify_start
from .sink import CONTEXT, of_the_query, write_outputs, write_streamed
from .snapshots import Shelf
from .spark_errors import cause
from .state_store import state_rows
from .tasks import Tasks

_START_SECONDS = 60.0


class ClosedError(Exception):
    """The query is closing: this batch has written nothing."""


@dataclass
class Batch:
    """The function that Spark calls with the rows and the number of each micro-batch."""

    connection: Connection
    tablets: Tablets
    #: The epoch whose start this query is of.
    epoch: Epoch
    #: How the rows become those of each output; pipeline.start sets it.
    outputs: Outputs = field(init=False)
    #: Queues whose rows the plan does not count once.
    uncounted: frozenset[str] = frozenset()
    #: The query that calls this function, known once it was started.
    query: Future[StreamingQuery] = field(default_factory=Future)
    #: Set when the query is to end: the batch under way is the last one.
    closing: threading.Event = field(default_factory=threading.Event)
    #: Whether `stop` asks this process to end.
    is_stop_asked: bool = False
    #: The tables of static outputs.
    shelf: Shelf = field(init=False)
    _tasks: Tasks = field(default_factory=Tasks)
    #: The same batch, which the cluster has refused: to be looked at and not to be written.
    refused: Overflow | None = None
    #: The last batch that was handed to the transaction's commit: its number and rows by output.
    handed: tuple[int, Mapping[str, int]] = (-1, MappingProxyType({}))
    #: What ended the batch: Spark's own report of it is a Java trace around a Python trace.
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.shelf = Shelf(self.epoch)

    @cached_property
    def cluster(self) -> str:
        """The cluster's name, asked once and not for each batch."""
        return cluster_name(self.connection.client)

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Write the batch, or raise: then SPYT aborts the transaction and Spark ends the query."""
        try:
            self._run(rows, number)
        except (YtError, OSError) as error:
            self.failure = RestartableError(f"batch {number}: {first_line(error)}")
        except Exception as error:
            batch = f"batch {number} of epoch {self.epoch.number}"
            self.failure = nulls.explained(error, batch) or error
        if self.failure is not None:
            raise RuntimeError(f"batch {number} failed: {cause(str(self.failure))}")

    def _run(self, rows: DataFrame, number: int) -> None:
        if self.closing.is_set():  # under a backlog Spark leaves no time between two batches
            raise ClosedError(f"batch {number} is left for the next start")
        started = datetime.now(UTC)
        connection = self.connection
        execution = self.query.result(_START_SECONDS)._jsq.streamingQuery()
        transaction = self._spyts(number)
        select = transaction.select if transaction else connection.client.select_rows
        plan, ends = execution.lastExecution(), ends_of(execution, number)
        begun = self.tablets.beside.submit(self._begin, select, number, plan, ends)
        if not self._is_undone_whole:
            begun.result()

        def judged() -> LeftOut:
            return self._judged(left_out(plan, connection.job), begun.result()[1])

        is_stateful, java = connection.job.kind.is_stateful, self.tablets.java
        gathered = rows if is_stateful else self._tasks.gathered(rows, plan, ends)
        try:
            if self.refused is not None:
                with self.outputs.of(gathered, judged) as frames:
                    if connection.job.reject:
                        frames = {**frames, REJECTED: rejected_rows(rows, plan, connection, java)}
                    raise explained(connection, self.refused, frames)
            if self.outputs.are_streamed:
                frame = of_the_query(rows, plan, java) if gathered is rows else gathered
                written = write_streamed(frame, plan, connection, java, number)
            else:
                with self.outputs.of(gathered, judged) as frames:
                    # First: a failure here leaves nothing that a reader sees, under no guarantee.
                    static = self.shelf.write(connection, frames, number)
                    written = write_outputs(frames, connection, java, number) | static
        finally:
            head, planned = begun.result()  # its error says more than one of the write's
        metrics = metrics_of(execution)
        for path in self.uncounted:
            metrics.pop(observed_name(path), None)
        audit(connection.client, number, head.ids, planned, metrics)
        found = self._rejected(judged(), rows, plan, number, planned)
        written = {**dict.fromkeys(connection.job.outputs, 0), **written}
        if found.rejected:
            written[REJECTED] = sum(found.rejected.values())
        pairs = {
            path: {partition: (rows.first, rows.end) for partition, rows in partitions.items()}
            for path, partitions in planned.items()
        }
        tables = self.shelf.tables(number)
        done = BatchRow(pairs, written, started, datetime.now(UTC), tables, found.late)
        count = state_rows(plan) if is_stateful else None
        after, path = moved(head, number, planned, count), connection.settings.ledger
        if transaction is not None:
            write_head(transaction, path, after, done)
            self.handed = number, written
            return
        with self.tablets.transaction() as own:
            self._verify(own.select, number)  # the outputs took their time
            write_head(own, path, after, done)

    def _rejected(
        self, found: LeftOut, rows: DataFrame, plan: Any, number: int, planned: Ranges
    ) -> LeftOut:
        """Write the rows that REJECT has kept out, if any; return how many the batch leaves out."""
        counts, connection = found.rejected, self.connection
        if not any(planned.values()) or (counts is not None and not any(counts.values())):
            return found
        java = self.tablets.java
        again = write_rejected(rows, plan, connection, java, number, counts, planned)
        return self._judged(replace(found, rejected=again), planned)

    def _judged(self, found: LeftOut, planned: Ranges) -> LeftOut:
        """Return ``found``. Raises JobError when the batch leaves out too many rows."""
        read = sum(rows.count for partitions in planned.values() for rows in partitions.values())
        connection = self.connection
        verify_limit(found, read, connection.settings.reject_limit, connection.job)
        return found

    @property
    def _is_undone_whole(self) -> bool:
        """Whether the transaction undoes all that Spark writes; state is written beside it."""
        connection = self.connection
        return connection.guarantee.in_transaction and not connection.job.kind.is_stateful

    def _begin(
        self, select: Select, number: int, plan: Any, ends: Sequence[Mapping[int, int]]
    ) -> tuple[Head, Ranges]:
        """Return the verified head, and the rows that the batch has to read and does read."""
        head = self._verify(select, number)
        self.is_stop_asked = head.stopped == self.epoch.number
        queues = self.connection.settings.queues
        planned = ranges(number, queues, head.ends, checkpoint.by_queue(ends, len(queues)))
        verify_start(number, planned, reads(plan))
        return head, planned

    def _verify(self, select: Select, number: int) -> Head:
        return verify_head(self.connection, select, self.epoch, self.cluster, number)

    def _spyts(self, number: int) -> Transaction | None:
        """Return the transaction that SPYT has opened and will commit; None without one.

        Raises JobError when a guarantee needs it and there is none.
        """
        if not self.connection.guarantee.in_transaction:
            return None
        context = self.tablets.java[CONTEXT]()
        if context.isEmpty():
            raise JobError(
                f"SPYT has opened no transaction for batch {number}",
                "start through `python -m`, make or `make submit`; `check` verifies SPYT's patch",
            )
        found = context.get()
        proxy = found.stickyAddress()
        return self.tablets.attached(
            str(found.txId()), str(proxy.get()) if proxy.isDefined() else None
        )


def verify_head(
    connection: Connection, select: Select, mine: Epoch, cluster: str, number: int
) -> Head:
    """Return the head, if this batch is the next one after it.

    Raises SupersededError for a foreign epoch, RestartableError for another batch, or for a
    consumer that something else has moved.
    """
    settings = connection.settings
    head = verify_epoch(read_head(settings.ledger, select), mine)
    if (head.folder, head.batch) != (mine.number, number - 1):
        raise RestartableError(
            f"batch {number} of epoch {mine.number} does not follow batch {head.batch} of epoch "
            f"{head.folder}, the last one in the ledger"
        )
    if connection.guarantee.in_transaction:  # elsewhere SPYT moves the consumer one batch behind
        found = snapshot.consumed(select, cluster, settings.consumer)
        for path in head.queues:
            ends = head.ends[path]
            for partition in sorted({*ends, *found.get(path, {})}):
                row, end = found.get(path, {}).get(partition, 0), ends.get(partition, 0)
                if row != end:
                    raise RestartableError(
                        f"batch {number} begins at row {end} of {path}, partition {partition}, "
                        f"but the consumer is at row {row}: something else moved it"
                    )
    return head


def moved(head: Head, number: int, planned: Ranges, state: int | None = None) -> Head:
    """Return the head after the batch, which leaves so many rows in the state."""
    ends = {
        path: {**rows, **{p: range_.end for p, range_ in planned.get(path, {}).items()}}
        for path, rows in head.ends.items()
    }
    since = ends if state == 0 else head.state_since
    after = replace(head, batch=number, number=head.number + 1, ends=ends)
    return replace(after, state_rows=state, state_since=since)


def write_head(transaction: Transaction, path: str, head: Head, done: BatchRow) -> None:
    """Write the head and the batch's row into the ledger at ``path``; remove the oldest row."""
    rows = [ledger.head_row(head), ledger.batch_row(head, done)]
    last = head.number - ledger.kept(head)
    old = [{"kind": "batch", "number": last}] if last > 0 else []
    transaction.modify(path, ledger.COLUMNS, rows, old)
