"""A running query is looked at from outside: what ends it, and what is said."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zipfile import ZipFile

import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from minicluster.testing import Running
from tests.support import without_fix
from tests.support.examples import example
from tests.support.helpers import (
    ContextOf,
    fails_with,
)
from tests.support.server_errors import UNAVAILABLE_BY_HTTP, error
from tests.support.waiting import eventually
from ytstream.cluster.client import Client
from ytstream.cluster.mounting import closed
from ytstream.connector.tablet_transactions import Tablets
from ytstream.errors import RestartableError, StalledError, SupersededError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.query.stall_watchdog import (
    LOOK_SECONDS,
    ROWLESS,
    STALL_SECONDS,
    Watchdog,
    finished_tasks,
)
from ytstream.recovery import repositioning, start
from ytstream.recovery.epoch import Epoch
from ytstream_tools.demo.demo_tables import produce

pytestmark = pytest.mark.spark

QUERY = cast(StreamingQuery, SimpleNamespace(status={"message": "Getting offsets"}))


@pytest.fixture
def watched(
    provisioned_of: ContextOf, tablets: Tablets, caplog: pytest.LogCaptureFixture
) -> Callable[..., tuple[JobContext, Watchdog]]:
    """Commit a start of a job, and watch a query of it."""
    caplog.set_level(logging.INFO, logger="job")

    def watching(guarantee: str = "transactional") -> tuple[JobContext, Watchdog]:
        context = provisioned_of(guarantee)
        epoch, _ = start.prepare(context, tablets, Epoch())
        return context, Watchdog(context, epoch, QUERY, lambda: None, _next=0.0)

    return watching


def _send(context: JobContext, count: int) -> None:
    rows = example("transactional", "map").sample.make(count, 1, 0)
    produce(context.client, context.settings.queues[0], rows, 1)


def test_nothing_is_said_of_a_query_that_is_idle(watched: Any, caplog: Any) -> None:
    _, watch = watched()
    for number in range(10):
        watch.look(number * LOOK_SECONDS)
    assert caplog.messages == []


def test_it_looks_now_and_then(watched: Any, cluster: Running) -> None:
    _, watch = watched()
    watch.look(0.0)
    asked = cluster.client.faults.add(method="select_rows", times=None, action="delay", seconds=0)
    watch.look(LOOK_SECONDS - 1)
    assert cluster.client.faults.get(asked).hits == 0
    watch.look(LOOK_SECONDS)
    assert cluster.client.faults.get(asked).hits > 0


def test_a_foreign_epoch_ends_it(watched: Any, tablets: Tablets) -> None:
    context, watch = watched()
    start.prepare(context, tablets, Epoch(owner="another process"))
    with pytest.raises(SupersededError, match="another process"):
        watch.look(0.0)


def test_a_recreated_queue_ends_it(watched: Any) -> None:
    context, watch = watched()
    client, queue = context.client, context.settings.queues[0]
    schema = client.get(f"{queue}/@schema")
    client.remove(queue)
    client.create("table", queue, attributes={"dynamic": True, "schema": schema})
    client.mount_table(queue, sync=True)
    with fails_with(ErrorCode.QUEUE_RECREATED):
        watch.look(0.0)


@pytest.mark.parametrize("name", ["ledger", "consumer"])
def test_an_object_that_is_gone_ends_it(watched: Any, name: str) -> None:
    """It is no outage: the next start says what to do."""
    context, watch = watched()
    path = getattr(context.settings, name)
    context.client.remove(path)
    with pytest.raises(RestartableError, match=name):
        watch.look(0.0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("guarantee", "row"), [("transactional", 5), ("transactional", 2), ("at_least_once", 5)]
)
def test_a_consumer_that_something_else_moved_ends_it(
    watched: Any, tablets: Tablets, guarantee: str, row: int
) -> None:
    context, watch = _at_row_3(watched, tablets, guarantee)
    settings = context.settings
    context.client.advance_queue_consumer(settings.consumer, settings.queues[0], 0, 3, row)
    with fails_with(ErrorCode.CONSUMER_MOVED):
        watch.look(LOOK_SECONDS)


@pytest.mark.thorough
def test_unwatched_an_idle_query_does_not_notice_it(
    watched: Any, tablets: Tablets, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fix.watch_no_consumer(monkeypatch)
    context, watch = _at_row_3(watched, tablets, "transactional")
    settings = context.settings
    context.client.advance_queue_consumer(settings.consumer, settings.queues[0], 0, 3, 5)
    watch.look(LOOK_SECONDS)


@pytest.mark.thorough
@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "bare"])
def test_a_consumer_that_is_behind_is_put_back(
    watched: Any,
    tablets: Tablets,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
    fixed: bool,
) -> None:
    """SPYT in an older driver moves it without a fence; here another move overtakes ours once."""
    if not fixed:
        without_fix.put_no_consumer_back(monkeypatch)
    context, watch = _at_row_3(watched, tablets, "at_least_once")
    client, settings = context.client, context.settings
    client.advance_queue_consumer(settings.consumer, settings.queues[0], 0, 3, 2)
    said = f"Offset conflict at partition 0 of consumer {settings.consumer}: expected offset 2"
    faults = cluster.client.faults
    faults.add(method="advance_queue_consumer", action="fail", error=error(3100, said))
    for number, row in ((1, 2), (2, 3 if fixed else 2)):
        watch.look(number * LOOK_SECONDS)
        (queue,) = positions.read(client, settings).queues
        assert queue.consumed[0] == row
    moved = [line for line in caplog.messages if "the consumer was at row 2" in line]
    assert len(moved) == fixed


def _at_row_3(watched: Any, tablets: Tablets, guarantee: str) -> tuple[JobContext, Watchdog]:
    """Return a job that has read three rows of five, and its watch, which has looked once."""
    context, watch = watched(guarantee)
    _send(context, 5)
    repositioning.rewind(context, tablets, "rows", [f"{context.settings.queues[0]}:0=3"])
    watch.epoch, _ = start.prepare(context, tablets, Epoch())
    watch.look(0.0)
    return context, watch


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["queue", "ledger", "consumer"])
def test_an_unmounted_table_is_named_each_minute_and_its_return_too(
    watched: Any, caplog: Any, name: str
) -> None:
    context, watch = watched()
    client, settings = context.client, context.settings
    path = settings.queues[0] if name == "queue" else getattr(settings, name)
    client.unmount_table(path, sync=True)
    for number in range(6):
        watch.look(number * LOOK_SECONDS)
    client.mount_table(path, sync=True)
    watch.look(6 * LOOK_SECONDS)
    said = f"{name} {path} is unmounted, run: yt mount-table {path} --sync"
    assert caplog.messages == [
        *(f"waiting for the cluster for {seconds} s now: {said}" for seconds in (0, 60)),
        "watch: the cluster answers again",
    ]


@pytest.mark.parametrize(
    ("state", "command"), [("frozen", "unfreeze"), ("unmounting", "mount"), ("transient", "mount")]
)
def test_a_table_on_its_way_is_named(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch, state: str, command: str
) -> None:
    settings = provisioned_of("transactional").settings
    monkeypatch.setattr("ytstream.cluster.mounting.facts", lambda *_: {"tablet_state": state})
    lines = closed(cast(Client, None), settings)
    assert f"output 'output' {settings.output} is {state}, run: yt {command}-table" in lines[-1]
    queues = [line for line in lines if line.startswith("queue")]
    assert len(queues) == (state != "frozen")  # it can be read


def test_a_folder_of_static_tables_is_not_mounted_and_need_not_be(
    provisioned_of: ContextOf,
) -> None:
    context = provisioned_of("transactional")
    folder = context.settings.checkpoint
    settings = replace(context.settings, outputs={"output": folder})
    assert closed(context.client, settings) == []


def test_a_stall_is_said_and_then_ends_it(watched: Any, caplog: Any) -> None:
    context, watch = watched()
    _send(context, 5)
    for now in (0.0, STALL_SECONDS - 1, STALL_SECONDS + LOOK_SECONDS, STALL_SECONDS * 2):
        watch.look(now)
    (said,) = caplog.messages
    assert said.startswith("watch: STALLED: rows wait, no batch and no task ends (Spark: Getting")
    with pytest.raises(StalledError, match="5 rows wait, and no batch and no task has ended for"):
        watch.look(context.settings.stall_seconds + 1)


def test_a_batch_whose_tasks_finish_is_no_stall(watched: Any, caplog: Any) -> None:
    """It takes ten times as long as a stall may, and one task after the other ends."""
    context, watch = watched()
    _send(context, 5)
    stall = context.settings.stall_seconds
    finished: list[int] = []
    watch.tasks = lambda: len(finished)
    for number in range(20):
        finished.append(number)
        watch.look(number * stall / 2)
    last = 19 * stall / 2
    with pytest.raises(StalledError, match=f"no task has ended for {stall + 1:.0f} s"):
        watch.look(last + stall + 1)
    assert caplog.messages == []


def test_a_batch_without_rows_that_hangs_is_a_stall(watched: Any) -> None:
    """It closes windows: no row waits, and the query is not idle."""
    context, watch = watched()
    watch.query = SimpleNamespace(status={"message": ROWLESS})
    watch.look(0.0)
    assert not watch.is_idle
    with pytest.raises(StalledError, match="a batch without rows is under way, and"):
        watch.look(context.settings.stall_seconds + context.settings.trigger_seconds)


@pytest.mark.thorough
def test_a_query_between_two_batches_without_rows_is_no_stall(watched: Any) -> None:
    context, watch = watched()
    for number in range(100):
        message = ROWLESS if number % 4 else "Waiting for next trigger"
        watch.query = SimpleNamespace(status={"message": message})
        watch.look(number * context.settings.stall_seconds / 4)


def test_spark_says_so_of_a_batch_without_rows() -> None:
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-sql_2.1*.jar")
    with ZipFile(jar) as classes:
        names = (name for name in classes.namelist() if name.endswith("/MicroBatchExecution.class"))
        assert any(ROWLESS.encode() in classes.read(name) for name in names)


def test_a_stall_is_told_from_a_queue_without_rows(watched: Any) -> None:
    context, watch = watched()
    watch.look(0.0)
    assert watch.is_idle
    _send(context, 5)
    watch.look(LOOK_SECONDS)
    assert not watch.is_idle


@pytest.mark.thorough
def test_a_task_that_finishes_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    """A job of two tasks, of which one waits for a file."""
    gate = tmp_path / "gate"

    def wait(numbers: Iterable[int]) -> Iterable[int]:
        for number in numbers:
            while number and not gate.exists():
                time.sleep(0.05)
            yield number

    rows = spark.sparkContext.parallelize(range(2), 2).mapPartitions(wait)
    job = threading.Thread(target=rows.count)
    assert finished_tasks(spark) == ()
    job.start()
    try:
        eventually(lambda: any(count for _, count in finished_tasks(spark)))
        found = finished_tasks(spark)
    finally:
        gate.touch()
        job.join()
    assert [count for _, count in found] == [1]


@pytest.mark.thorough
def test_rows_that_wait_for_the_next_trigger_are_no_stall(watched: Any, caplog: Any) -> None:
    context, watch = watched()
    settings = replace(context.settings, trigger_seconds=900.0)
    watch.context = replace(context, settings=settings)
    _send(context, 5)
    for now in (0.0, 899.0, 1_400.0):
        watch.look(now)
    assert len(caplog.messages) == 1  # once the trigger is over by a minute
    with pytest.raises(StalledError, match=r"5 rows wait, and no .* has ended for 1500 s"):
        watch.look(900.0 + settings.stall_seconds)


@pytest.mark.thorough
def test_an_outage_is_said_once_and_waited_for(watched: Any, cluster: Running, caplog: Any) -> None:
    _, watch = watched()
    away = UNAVAILABLE_BY_HTTP
    cluster.client.faults.add(method="select_rows", times=None, action="fail", error=away)
    watch.look(0.0)
    watch.look(LOOK_SECONDS)
    cluster.client.faults.clear()
    watch.look(2 * LOOK_SECONDS)
    assert caplog.messages == [
        "waiting for the cluster for 0 s now: Peer is not active",
        "watch: the cluster answers again",
    ]
