"""One job in the tests' own session, and the rows around it."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from ytstream.cluster.client import Client
from ytstream.connector.java import jvm_of
from ytstream.connector.tablet_transactions import Tablets
from ytstream.job import Connection, Job
from ytstream.query import pipeline
from ytstream.query.supervisor import read_reference
from ytstream.recovery import start
from ytstream.recovery.checkpoint_dir import path_of
from ytstream.recovery.epoch import Epoch
from ytstream.settings.job_settings import Settings

from ..demo import demo_tables, sample_types
from ..demo.demo_text import differences
from ..demo.sample import Counted, Sample
from ..demo.scenario import drained
from ..demo.unexpected_rejects import kept_out

PATIENCE_SECONDS = 120.0


@dataclass
class Stream:
    """A provisioned job with its queues, to be started as often as a test likes."""

    connection: Connection
    sample: Sample
    spark: SparkSession
    sent: list[dict[str, Any]] = field(default_factory=list)
    #: The newest event time that was sent.
    _now: int | None = None
    #: This process, as the ledger knows it.
    epoch: Epoch = field(default_factory=Epoch)
    #: Whether recover() has committed a start that no query has used.
    _is_ready: bool = False

    @property
    def client(self) -> Client:
        """The client of the cluster."""
        return self.connection.client

    @property
    def settings(self) -> Settings:
        """The job's settings."""
        return self.connection.settings

    def configure(self, **changes: Any) -> None:
        """Change settings, as an edit of the configuration would."""
        settings = replace(self.connection.settings, **changes)
        self.connection = replace(self.connection, settings=settings)

    def redeclare(self, **changes: Any) -> None:
        """Change the job's declaration, as an edit of job.py would."""
        self.connection = replace(self.connection, job=replace(self.connection.job, **changes))

    def send(self, count: int, *, queues: Sequence[int] | None = None) -> None:
        """Send ``count`` more rows into each queue, or into those of the given positions."""
        for position in queues if queues is not None else range(len(self.settings.queues)):
            rows = self.sample.make(count, len(self.sent) + position + 1, self._now)
            sample_types.verify("rows() in sample/rows.py", self.connection.job.queue_columns, rows)
            self.publish(rows, position)
        if self.sample.event_time is not None:
            self._now = self.sample.newest(self.connection.job, self.sent)

    def publish(self, rows: list[dict[str, Any]], position: int = 0) -> None:
        """Send these very rows into one queue."""
        queue = self.settings.queues[position]
        tablets = int(self.client.get(f"{queue}/@tablet_count"))
        demo_tables.produce(self.client, queue, rows, tablets)
        self.sent += rows

    @property
    def tablets(self) -> Tablets:
        """Tablet transactions, through the session's JVM."""
        return Tablets(jvm_of(self.spark), self.settings)

    @property
    def folder(self) -> str:
        """The checkpoint folder of the last start."""
        return path_of(self.settings, self.epoch.number)

    def recover(self) -> list[str]:
        """Commit a start as the job does; return what it says it did. The next run is its query."""
        self.epoch, notes = start.prepare(self.connection, self.tablets, self.epoch)
        self._is_ready = True
        return list(notes)

    @contextmanager
    def running(self) -> Iterator[StreamingQuery]:
        """Run the query, stopped at the end; start it as the job does, unless recover() has."""
        if not self._is_ready:
            self.recover()
        self._is_ready = False
        query, batch = pipeline.start(self.flow(), self.connection, self.tablets, self.epoch)
        self.batch = batch
        try:
            yield query
            settle(query)
            if query.isActive:  # after a failure the next start publishes
                batch.static_tables.publish(self.client, self.settings, math.inf)
        except StreamingQueryException as error:
            raise batch.failure or error from None
        finally:
            query.stop()

    def flow(self) -> pipeline.Flow:
        """Return what the job would stream and write."""
        known = read_reference(self.spark, self.connection)
        return pipeline.flow_of(self.spark, self.connection, known)

    def drain(self) -> None:
        """Run until every row is in a finished batch."""
        with self.running() as query:
            wait(drained(self.connection), query)

    def close(self) -> None:
        """Run until drained, and bring out what still waits behind the watermark, if anything."""
        with self.running() as query:
            for row in (None, *self.sample.closing(self.connection.job, self.sent)):
                if row is not None:
                    self.publish([row])
                wait(drained(self.connection), query)

    def outcomes(self) -> dict[str, demo_tables.Outcome]:
        """Count lost and duplicated rows of each output."""
        return demo_tables.outcomes(self.connection, self.sample, self.sent)

    def outcome(self) -> demo_tables.Outcome:
        """Count lost and duplicated rows of all outputs."""
        return demo_tables.together(self.outcomes())

    def is_exact(self) -> bool:
        """Return whether nothing is lost and nothing duplicated."""
        outcome = self.outcome()
        return (outcome.lost, outcome.duplicated) == (0, 0)

    def wanted(self) -> Counted:
        """Return the output rows that must come of the rows sent."""
        return self.sample.wanted(self.connection.job, self.sent)

    def found(self) -> Counted:
        """Return the output's rows."""
        return demo_tables.read_output(self.connection, "output")


def wait(is_over: Callable[[], bool], query: StreamingQuery, *, may_end: bool = False) -> None:
    """Wait until ``is_over``; fails when the query ends before or when it takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_over():
        if not (may_end or query.isActive):
            query.awaitTermination()  # raises what ended it
            pytest.fail("the query ended by itself", pytrace=False)
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.1)


def settle(query: StreamingQuery) -> None:
    """Wait for the batch under way: its transaction and its progress come after ``commits/N``."""
    wait(lambda: not (query.isActive and query.status["isTriggerActive"]), query, may_end=True)


def wait_for_failure(query: StreamingQuery) -> str:
    """Return the text of the exception that ends the query."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while query.isActive:
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.1)
    return str(query.exception())


def assert_exact(job: Job, outcomes: Mapping[str, demo_tables.Outcome]) -> None:
    """Fail with the first rows that differ unless nothing is lost and nothing duplicated."""
    console = Console(width=120, record=True, file=io.StringIO())
    for name, outcome in outcomes.items():
        table = differences(job, outcome, name)
        if table is not None or outcome.duplicated:
            console.print(table or f"{name}: {outcome.duplicated} rows too many")
    if remark := kept_out(job, outcomes):
        console.print(remark, markup=False)
    if text := console.export_text():
        pytest.fail(text, pytrace=False)
