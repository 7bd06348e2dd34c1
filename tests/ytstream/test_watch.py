"""A running query is looked at from outside: what ends it, and what is said."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from minicluster.testing import Running
from tests.ytstream.examples import example
from tests.ytstream.helpers import ConnectionOf
from ytstream import RestartableError
from ytstream.demo.tables import produce
from ytstream.errors import SupersededError
from ytstream.job import Connection
from ytstream.query.watch import LOOK_SECONDS, STALL_SECONDS, Watch
from ytstream.recovery import before_start, operator
from ytstream.recovery.epoch import Epoch
from ytstream.tablets import Tablets

pytestmark = pytest.mark.spark

QUERY = cast(StreamingQuery, SimpleNamespace(status={"message": "Getting offsets"}))


@pytest.fixture
def watched(
    provisioned_of: ConnectionOf, tablets: Tablets, caplog: pytest.LogCaptureFixture
) -> Callable[..., tuple[Connection, Watch]]:
    """Commit a start of a job, and watch a query of it."""
    caplog.set_level(logging.INFO, logger="job")

    def watching(guarantee: str = "transactional") -> tuple[Connection, Watch]:
        connection = provisioned_of(guarantee)
        epoch, _ = before_start.prepare(connection, tablets, Epoch())
        return connection, Watch(connection, epoch, QUERY, _next=0.0)

    return watching


def _send(connection: Connection, count: int) -> None:
    rows = example("transactional", "map").sample.make(count, 1, 0)
    produce(connection.client, connection.settings.queues[0], rows, 1)


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
    connection, watch = watched()
    before_start.prepare(connection, tablets, Epoch(owner="another process"))
    with pytest.raises(SupersededError, match="another process"):
        watch.look(0.0)


def test_a_recreated_queue_ends_it(watched: Any) -> None:
    connection, watch = watched()
    client, queue = connection.client, connection.settings.queues[0]
    schema = client.get(f"{queue}/@schema")
    client.remove(queue)
    client.create("table", queue, attributes={"dynamic": True, "schema": schema})
    client.mount_table(queue, sync=True)
    with pytest.raises(RestartableError, match="dropped and recreated"):
        watch.look(0.0)


@pytest.mark.parametrize(
    ("guarantee", "row", "ends"),
    [
        ("transactional", 5, True),
        ("transactional", 2, True),
        ("at_least_once", 5, True),
        ("at_least_once", 2, False),  # SPYT is a batch behind
    ],
)
def test_a_consumer_that_something_else_moved_ends_it(
    watched: Any, tablets: Tablets, guarantee: str, row: int, ends: bool
) -> None:
    connection, watch = watched(guarantee)
    settings = connection.settings
    _send(connection, 5)
    queue = settings.queues[0]
    operator.rewind(connection, tablets, "rows", [f"{queue}:0=3"])
    watch.epoch, _ = before_start.prepare(connection, tablets, Epoch())
    watch.look(0.0)
    connection.client.advance_queue_consumer(settings.consumer, queue, 0, 3, row)
    if ends:
        with pytest.raises(RestartableError, match="something else moved it"):
            watch.look(LOOK_SECONDS)
    else:
        watch.look(LOOK_SECONDS)


def test_an_unmounted_queue_is_named_once_and_its_return_too(watched: Any, caplog: Any) -> None:
    connection, watch = watched()
    client, queue = connection.client, connection.settings.queues[0]
    client.unmount_table(queue, sync=True)
    for number in range(3):
        watch.look(number * LOOK_SECONDS)
    client.mount_table(queue, sync=True)
    watch.look(3 * LOOK_SECONDS)
    assert caplog.messages == [
        f"watch: queue {queue} is unmounted: its rows cannot be read",
        "watch: all is well again",
    ]


def test_a_stall_is_said_and_then_ends_it(watched: Any, caplog: Any) -> None:
    connection, watch = watched()
    _send(connection, 5)
    for now in (0.0, STALL_SECONDS - 1, STALL_SECONDS + LOOK_SECONDS, STALL_SECONDS * 2):
        watch.look(now)
    (said,) = caplog.messages
    assert said.startswith("watch: STALLED: rows wait and no batch ends (Spark: Getting offsets)")
    with pytest.raises(RestartableError, match="5 rows wait and no batch has ended for"):
        watch.look(connection.settings.stall_seconds + 1)


def test_rows_that_wait_for_the_next_trigger_are_no_stall(watched: Any, caplog: Any) -> None:
    connection, watch = watched()
    settings = replace(connection.settings, trigger_seconds=900.0)
    watch.connection = replace(connection, settings=settings)
    _send(connection, 5)
    for now in (0.0, 899.0, 1_400.0):
        watch.look(now)
    assert len(caplog.messages) == 1  # once the trigger is over by a minute
    with pytest.raises(RestartableError, match="5 rows wait and no batch has ended for 1500 s"):
        watch.look(900.0 + settings.stall_seconds)


def test_an_outage_is_said_once_and_waited_for(watched: Any, cluster: Running, caplog: Any) -> None:
    _, watch = watched()
    error = {"code": 1, "message": "the proxy is on strike"}
    cluster.client.faults.add(method="select_rows", times=None, action="fail", error=error)
    watch.look(0.0)
    watch.look(LOOK_SECONDS)
    cluster.client.faults.clear()
    watch.look(2 * LOOK_SECONDS)
    assert caplog.messages == [
        "waiting for the cluster for 0 s now: the proxy is on strike",
        "watch: the cluster answers again",
    ]
