"""One life of the query in the tests' own session, and the rows around it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from conftest import Module

from demo import tables
from demo.bids import EVENT_TIME, FIRST_BID_US, bids
from demo.expected import COLUMNS, closing, expected, published
from demo.scenario import drained

PATIENCE_SECONDS = 120.0
_REFUSED = {"code": 1, "message": "the proxy is on strike"}


@dataclass
class Stream:
    """A provisioned job with its queues, to be started as often as a test likes."""

    module: Module
    client: Any
    settings: Any
    spark: Any
    sent: list[dict[str, Any]] = field(default_factory=list)
    _now: int = FIRST_BID_US

    def send(self, count: int, *, queues: tuple[int, ...] | None = None) -> None:
        """``count`` more bids into each queue, or into those of the given positions."""
        for position in queues if queues is not None else range(len(self.settings.queues)):
            rows = bids(count, seed=len(self.sent) + position + 1, start_us=self._now)
            self.publish(published(list(rows)), position)
        self._now = max(int(row[EVENT_TIME]) for row in self.sent)

    def publish(self, rows: list[dict[str, Any]], position: int = 0) -> None:
        """These very rows into one queue."""
        queue = self.settings.queues[position]
        tablets = int(self.client.get(f"{queue}/@tablet_count"))
        tables.produce(self.client, queue, rows, tablets)
        self.sent += rows

    def recover(self) -> list[str]:
        """What recovery says it did."""
        return list(self.module("recovery").prepare(self.client, self.settings))

    def forget(self) -> None:
        """Remove what is in the checkpoint; its folder and its marker stay."""
        for name in self.client.list(self.settings.checkpoint):
            path = f"{self.settings.checkpoint}/{name}"
            self.client.remove(path, recursive=True, force=True)

    @contextmanager
    def running(self) -> Iterator[Any]:
        """The query, stopped at the end."""
        pipeline = self.module("pipeline")
        rows = pipeline.result(self.spark, self.client, self.settings)
        query = pipeline.start(rows, self.settings)
        try:
            yield query
            settle(query)
        finally:
            query.stop()

    def drain(self) -> None:
        """Run until every row is in a finished batch."""
        with self.running() as query:
            wait(drained(self.client, self.settings), query)

    def close(self) -> None:
        """Bring out what still waits behind the watermark, if anything does."""
        with self.running() as query:
            for row in (None, *closing(self.sent)):
                if row is not None:
                    self.publish([row])
                wait(drained(self.client, self.settings), query)

    def outcome(self) -> tables.Outcome:
        """Lost and duplicated rows, counted."""
        return tables.compare(expected(self.sent), self.found())

    def found(self) -> Counter[tuple[Any, ...]]:
        """The output's rows."""
        return tables.read(self.client, self.settings.output, COLUMNS)


def wait(is_over: Callable[[], bool], query: Any, *, may_end: bool = False) -> None:
    """Until ``is_over``; fails when the query ends before or when it takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_over():
        assert may_end or query.isActive, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.1)


def settle(query: Any) -> None:
    """Until no batch is under way: its transaction and its progress come after ``commits/N``."""
    wait(lambda: not (query.isActive and query.status["isTriggerActive"]), query, may_end=True)


def wait_for_failure(query: Any) -> str:
    """The text of the exception that ends the query."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while query.isActive:
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.1)
    return str(query.exception())


def several_triggers(query: Any, stream: Stream) -> None:
    """Give the query ten looks at the queues' ends."""
    deadline = time.monotonic() + 10 * stream.settings.trigger_seconds
    wait(lambda: time.monotonic() > deadline, query)


def die_between_the_logs(stream: Stream, cluster: Any, batch: int) -> None:
    """Run until ``commits/batch`` is written and the batch's transaction is gone."""
    faults = cluster.client.faults
    commit = f"{stream.settings.checkpoint}/commits/{batch}"
    written = faults.add(
        method="MoveNode",
        where={"destination_path": commit},
        when="after",
        action="delay",
        seconds=0,
    )
    tablets = sum(stream.module("provision").queue_tablets(stream.client, stream.settings).values())
    faults.add(
        method="AdvanceConsumer", skip=tablets * batch, times=None, action="fail", error=_REFUSED
    )
    # SPYT takes the entry back when it can: a driver that is dead cannot.
    faults.add(
        method="RemoveNode", where={"path": commit}, times=None, action="fail", error=_REFUSED
    )
    with stream.running() as query:
        wait_for_failure(query)
    assert faults.get(written).hits == 1
    faults.clear()
    assert stream.client.exists(commit)


def lose_the_commits_reply(stream: Stream, cluster: Any) -> None:
    """Run until a batch's transaction has committed and nobody was told."""
    faults = cluster.client.faults
    # The consumer moves in the transaction, right before it commits.
    advanced = faults.add(method="AdvanceConsumer", action="delay", seconds=0)
    faults.add(method="CommitTransaction", armed_by=advanced, action="lose_reply")
    with stream.running() as query:
        wait_for_failure(query)
    faults.clear()
