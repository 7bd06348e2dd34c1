"""A driver without Spark: what its batches leave on the cluster is Spark's, SPYT's and ours.

The steps of the runtime in the middle of a batch are those of SimulatedDriver. Its two kinds differ
in what a batch does with rows. Driver transforms nothing: each batch notes the rows that it reads
in the ledger and, for jobs with state, in the state, so that both tell which rows were read, in
which order and how often. The driver of tests/faults/sequences reads and writes rows, request by
request as Spark and SPYT do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from yt.wrapper.driver import make_request

from tests.support.verdict import Verdict
from ytstream.cluster.client import Client, cluster_name
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.ledger import batch_commit, positions
from ytstream.ledger.batch_row_ranges import Ranges, RowRange
from ytstream.ledger.ledger_rows import BatchRow, Head, batch_name
from ytstream.ledger.offsets import Rows
from ytstream.ledger.positions import Select
from ytstream.query import batch
from ytstream.recovery import migration, repositioning, spark_logs
from ytstream.recovery.checkpoint_repair import path_of
from ytstream.recovery.epoch import Epoch
from ytstream.recovery.start import prepare
from ytstream.settings.job_settings import Settings
from ytstream.version import version_of
from ytstream_tools.demo.demo_tables import produce

STEPS = {
    True: ("offsets", "state", "commits", "head"),
    False: ("offsets", "state", "head", "commits"),
}
"""What a batch writes, in its order. In a transaction the head is seen only when it commits. A test
compares it with tests/faults/protocol.py."""
Read = tuple[str, int, int, int]
"""Queue, partition, first row, row after the last one."""
BID = {"event_id": "e", "auction": 1, "bidder": 1, "price": 1, "date_time": 1}

runtime: Any = batch
"""Functions are looked up at each call, since tests take guards out of the module."""
Spans = Sequence[Mapping[int, RowRange]]
"""Rows that are read, by partition, for each queue."""


@dataclass
class SimulatedDriver:
    """One process that runs the job."""

    context: JobContext
    tablets: Any
    """Those of the runtime, or InsideTablets."""
    epoch: Epoch = field(default_factory=Epoch)

    @property
    def client(self) -> Any:
        """The client of the cluster: ytsaurus-client's, or an InsideClient."""
        return self.context.client

    @property
    def settings(self) -> Settings:
        """The job's settings."""
        return self.context.settings

    @property
    def folder(self) -> str:
        """The checkpoint folder of the last start."""
        return path_of(self.settings, self.epoch.number)

    @property
    def in_transaction(self) -> bool:
        """Whether SPYT's transaction holds what a batch writes."""
        return self.context.guarantee.in_transaction

    def ends_of(self, number: int) -> Rows:
        """Return where a batch ends, by the offset log."""
        return spark_logs.planned(self.client, self.folder, number).ends

    def confirm(self, ends: Rows) -> None:
        """Move the consumer behind a batch, as SPYT does: a batch late, and without a look.

        See YtStreamingSource.commit.
        """
        for path, rows in zip(self.settings.queues, ends, strict=True):
            for partition, end in rows.items():
                self.client.advance_queue_consumer(
                    self.settings.consumer, path, partition, None, end
                )

    def verified_head(self, select: Select, cluster: str, number: int) -> Head:
        """Return the head that the batch follows. Raises what the runtime raises."""
        head: Head = runtime.verify_head(self.context, select, self.epoch, cluster, number)
        return head

    def verified(
        self, select: Select, cluster: str, number: int, ends: Rows, reads: Spans
    ) -> tuple[Head, Ranges]:
        """Return the head, and the rows that a batch reads after it: it may be written."""
        head, queues = self.verified_head(select, cluster, number), self.settings.queues
        name = batch_name(self.epoch.number, number)
        planned = runtime.ranges(name, queues, head.ends, spark_logs.by_queue(ends, len(queues)))
        runtime.verify_start(name, planned, reads)
        return head, planned

    def record(self, transaction: Any, cluster: str, after: Head, done: BatchRow) -> None:
        """Write the head after a batch and its row: into SPYT's transaction, or their own."""
        ledger = self.settings.ledger
        if transaction is not None:
            batch_commit.write_head(transaction, ledger, after, done)
            return

        def verify(select: Select) -> Head:
            return self.verified_head(select, cluster, after.batch)

        consumer = self.settings.consumer
        batch_commit.close_batch(self.tablets, verify, consumer, ledger, after, done)


@dataclass
class Driver(SimulatedDriver):
    """One process after the other that runs the job."""

    watermark: int = 0
    """The watermark after a batch, in milliseconds."""
    is_emptied: bool = False
    """Whether a batch leaves no row in the state, by Spark's count."""

    def configure(self, **changes: Any) -> None:
        """Change settings, as an edit of the configuration would."""
        settings = replace(self.settings, **changes)
        self.context = replace(self.context, settings=settings)

    def redeclare(self, **changes: Any) -> None:
        """Change the job's declaration, as an edit of job.py would."""
        job = replace(self.context.job, **changes)
        self.context = replace(self.context, job=job, guarantee=guarantee_of(job))

    def start(self, *, new_process: bool = False) -> list[str]:
        """Commit a start; return what it says. ``new_process``: in another process."""
        self.epoch = Epoch() if new_process else self.epoch
        self.epoch, notes = prepare(self.context, self.tablets, self.epoch)
        return list(notes)

    def rewind(
        self, to: str, *rows: str, overwrite: bool = False, empty: bool = False
    ) -> list[str]:
        """Rewind the job, which is stopped."""
        options = {"overwrite": overwrite, "empty": empty}
        return repositioning.rewind(self.context, self.tablets, to, rows, **options)

    def migrate(self) -> list[str]:
        """Migrate the job, which is stopped."""
        return migration.migrate(self.context, self.tablets)

    def send(self, count: int, *queues: str) -> None:
        """Append ``count`` rows to each partition of each queue, or of the queues given."""
        for queue in queues or self.settings.queues:
            tablets = int(self.client.get(f"{queue}/@tablet_count"))
            produce(self.client, queue, [BID] * (count * tablets), tablets)

    def batch(
        self, last_step: str | None = None, before_head: Callable[[], None] = lambda: None
    ) -> None:
        """Run one batch; die after ``last_step`` of STEPS."""
        number, ends = self._plan()
        planned = self._planned(number, ends)
        for step in STEPS[self.in_transaction]:
            if step == "state" and self.context.job.kind.is_stateful:
                read = [*self._state(number), *_listed(planned)]
                self._set(f"state/0/0/{number + 1}.delta", json.dumps(read))
            if step == "head":
                before_head()
                self._commit(number, ends, planned)
            if step == "commits":
                text = f'v1\n{{"nextBatchWatermarkMs":{self.watermark}}}'
                write(self.client, f"{self.folder}/commits/{number}", text)
            if step == last_step:
                return

    def consumed(self) -> dict[int, int]:
        """Return where the consumer is in the partitions of the one queue."""
        (queue,) = positions.read(self.client, self.settings).queues
        return dict(queue.consumed)

    def run(self, count: int, *, new_process: bool = False) -> None:
        """Start, and read ``count`` more rows of each partition in one batch."""
        self.start(new_process=new_process)
        self.send(count)
        self.batch()

    def read(self) -> list[Read]:
        """Return which rows were read, in their order, by the ledger."""
        rows = self.client.select_rows(
            f'number, queues from [{self.settings.ledger}] where kind = "batch"'
        )
        return [
            (str(queue["path"]), int(partition), int(pair[0]), int(pair[1]))
            for row in sorted(rows, key=lambda row: int(row["number"]))
            for queue in row["queues"]
            for partition, pair in sorted(queue["rows"].items())
        ]

    def outcome(self) -> Verdict:
        """Return how many rows were lost and how many repeated, by the ledger and by the state."""
        head = positions.read(self.client, self.settings).head
        assert head is not None
        if self.context.job.kind.is_stateful:
            assert self._state(head.batch + 1) == self.read()
        return self.by_ledger()

    def by_ledger(self) -> Verdict:
        """Return how many rows were lost and how many repeated, by the ledger only."""
        read = self.read()
        lost = repeated = 0
        for queue in positions.read(self.client, self.settings).queues:
            for partition, upper in enumerate(queue.upper):
                at = 0
                for path, p, first, end in read:
                    if (path, p) == (queue.path, partition):
                        lost, repeated = lost + max(0, first - at), repeated + max(0, at - first)
                        at = end
                lost += upper - at
        return Verdict(lost, repeated=repeated)

    def standing(self) -> tuple[Any, ...]:
        """Return what the last start has decided: head, queues, consumer and checkpoint."""
        found, client = positions.read(self.client, self.settings), self.client
        assert found.head is not None
        assert (found.head.epoch, found.head.owner) == (self.epoch.number, self.epoch.owner)
        assert found.head.folder == self.epoch.number
        folders = [str(name) for name in client.list(self.settings.checkpoint)]
        assert str(self.epoch.number) in folders
        assert sum(map(str.isdigit, folders)) <= 2
        head = replace(found.head, epoch=0, owner="", folder=0, timestamp=None)
        return head, found.queues, found.consumer_marker, client.get(self.folder)

    def _plan(self) -> tuple[int, Rows]:
        """Plan a batch to the queues' ends, or return the one that was planned and not done."""
        log = spark_logs.numbers(self.client, f"{self.folder}/offsets")
        done = spark_logs.numbers(self.client, f"{self.folder}/commits")
        if log and log[-1] not in done:
            return log[-1], self.ends_of(log[-1])
        if log and not self.in_transaction:
            self.confirm(self.ends_of(log[-1]))
        found = positions.read(self.client, self.settings)
        number = log[-1] + 1 if log else 0
        ends = [dict(enumerate(queue.upper)) for queue in found.queues]
        text = offsets_text(ends, self.context.session_settings(version_of("pyspark")))
        write(self.client, f"{self.folder}/offsets/{number}", text)
        return number, ends

    def _planned(self, number: int, ends: Rows) -> Ranges:
        """Return what Spark reads: from the end of the batch before, or from the consumer."""
        if spark_logs.numbers(self.client, f"{self.folder}/offsets")[0] < number:
            begins = self.ends_of(number - 1)
        else:
            queues = positions.read(self.client, self.settings).queues
            begins = [queue.consumed for queue in queues]
        return dict(zip(self.settings.queues, spans(begins, ends), strict=True))

    def _commit(self, number: int, ends: Rows, planned: Ranges) -> None:
        """Write head and row of the batch; in a transaction move the consumer, too."""
        cluster, now = cluster_name(self.client), datetime.now(UTC)
        done = BatchRow(pairs(planned), {"output": 0}, now, now)
        is_stateful = self.context.job.kind.is_stateful
        state = len(self._state(number + 1)) if is_stateful else None
        state = 0 if self.is_emptied else state
        with self.tablets.transaction() if self.in_transaction else nullcontext() as transaction:
            select = transaction.select if transaction is not None else self.client.select_rows
            head, _ = self.verified(select, cluster, number, ends, [*planned.values()])
            after = batch_commit.moved(head, number, planned, state)
            self.record(transaction, cluster, after, done)
            if transaction is not None:
                for path, partition, first, end in _listed(planned):
                    transaction.advance(self.settings.consumer, path, partition, first, end)

    def _state(self, version: int) -> list[Read]:
        """Read a version of the state; Spark prefers a snapshot to a delta."""
        if version == 0:
            return []
        folder = f"{self.folder}/state/0/0"
        found = self.client.get(folder)
        text = found.get(f"{version}.snapshot", found.get(f"{version}.delta"))
        return [(q, p, a, b) for q, p, a, b in json.loads(text)]

    def _set(self, name: str, text: str) -> None:
        put(self.client, f"{self.folder}/{name}", text)


def spans(begins: Rows, ends: Rows) -> Spans:
    """Return the rows between the begins and the ends, which are there for each queue."""
    return [
        {
            partition: RowRange(begin.get(partition, 0), row)
            for partition, row in end.items()
            if row > begin.get(partition, 0)
        }
        for begin, end in zip(begins, ends, strict=True)
    ]


def pairs(read: Ranges) -> dict[str, dict[int, tuple[int, int]]]:
    """Return the rows as the ledger's row of a batch has them."""
    return {
        path: {partition: (rows.first, rows.end) for partition, rows in partitions.items()}
        for path, partitions in read.items()
    }


_FROZEN = ("spark.sql.shuffle.partitions", "spark.sql.streaming.stateStore.providerClass")
"""What Spark keeps of a session in the offset log, and the runtime reads (OffsetSeqMetadata)."""
_DEFAULT = {"spark.sql.shuffle.partitions": "2"}
"""Of a job with two partitions of state, by a version that wrote no more."""


def offsets_text(ends: Rows, session: Mapping[str, str] = _DEFAULT) -> str:
    """Return an entry of Spark's offset log."""
    conf = {key: session[key] for key in _FROZEN if key in session}
    lines = [{"partitions": {str(p): end - 1 for p, end in rows.items()}} for rows in ends]
    metadata = {"batchWatermarkMs": 0, "conf": conf}
    return "\n".join(["v1", *map(json.dumps, [metadata, *lines])])


def put(client: Any, path: str, text: str = "") -> None:
    """Write a node that nothing reads as a file: one request instead of ten."""
    client.set(path, text, recursive=True)


def write(client: Client, path: str, text: str) -> None:
    """Write a file, and the folders above it: two requests instead of the client's eleven."""
    client.create("file", path, recursive=True, force=True)
    make_request("write_file", {"path": path}, data=text.encode(), client=client)


def _listed(planned: Ranges) -> list[Read]:
    return [
        (path, partition, rows.first, rows.end)
        for path, partitions in planned.items()
        for partition, rows in sorted(partitions.items())
    ]
