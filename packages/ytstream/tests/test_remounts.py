"""A table is mounted anew between a batch's writes and its commit, as in a maintenance.

A tablet has another mount revision then, or another id, and the cluster refuses the commit
(YTsaurus, server/node/tablet_node/tablet_service.cpp, GetTabletSnapshotOrThrow). A job waits as for
any table that is away, and runs the batch again: no failure is counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from minicluster.client import Fault
from minicluster.testing import Running
from packages.ytstream.tests.helpers import StreamOf, adopt, sampled
from ytstream import provision
from ytstream.cluster import connect
from ytstream.demo.scenario import drained
from ytstream.query.supervisor import Life, supervise
from ytstream.testing.stream import PATIENCE_SECONDS, Stream

#: One queue's partition and two writes into the output for each batch.
ROWS, WRITE = 80, 40
GUARANTEES = ("transactional", "idempotent", "at_least_once")
TABLES = ("queue", "consumer", "output", "ledger")
#: "No such tablet" and "Invalid mount revision" (yt/yt/client/tablet_client/public.h).
REFUSED = {1701, 1704}
SAID = {"waits": "waiting for the cluster", "fails": "failure 1 of"}
#: Rows that at_least_once writes twice: the write that was committed before, and the whole batch.
REPEATED = {("at_least_once", "output"): ROWS - WRITE, ("at_least_once", "ledger"): ROWS}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("guarantee", "name", "how"),
    sampled(
        product(GUARANTEES, TABLES, ("remount", "reshard")),
        [
            ("transactional", "output", "reshard"),
            ("transactional", "ledger", "remount"),
            ("idempotent", "output", "reshard"),
            ("at_least_once", "output", "remount"),
        ],
    ),
)
def test_a_table_is_mounted_anew_between_the_writes_and_the_commit(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    guarantee: str,
    name: str,
    how: str,
) -> None:
    caplog.set_level("INFO", logger="job")
    monkeypatch.setattr(provision, "LOCAL_QUEUE_TABLETS", 1)
    stream = stream_of(guarantee)
    stream.configure(dyn_batch_size=WRITE)
    adopt(stream.spark, stream.connection)
    faults = cluster.client.faults
    with _supervised(stream) as wait:
        stream.send(ROWS)
        wait(drained(stream.connection))
        commit = _hold_a_commit(stream, cluster, name)
        stream.send(ROWS)
        wait(lambda: faults.get(commit).hits > 0)
        _mount_anew(stream, name, is_cut=how == "reshard")
        (entry,) = faults.release(commit)
        stream.send(ROWS)
        wait(drained(stream.connection))
    # The queue is read and not written: its rows are known by their numbers.
    assert (entry.error is None) == (name == "queue")
    assert entry.error is None or entry.error["code"] in REFUSED
    said = [line for line in SAID.values() if line in caplog.text]
    outcome = stream.outcome()
    print("SHOW", guarantee, name, how, entry.error, said, outcome.lost, outcome.duplicated)


@contextmanager
def _supervised(stream: Stream) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Run the job as `run` does, stopped at the end; yield a function that waits."""
    connection, stop = stream.connection, threading.Event()
    # A client of its own: a client keeps its transaction for all threads.
    own = replace(connection, client=connect(connection.settings))
    life = Life(own, stream.spark, stream.tablets, stop)
    job = replace(connection.job, first_pause_seconds=0.1, longest_pause_seconds=0.2)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            supervise(job, life, stop)
        except BaseException as error:
            errors.append(error)

    def wait(is_over: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_over():
            assert not errors
            assert time.monotonic() < deadline, "too late"
            time.sleep(0.1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield wait
    finally:
        stop.set()
        thread.join()
    assert errors == []


def _hold_a_commit(stream: Stream, cluster: Running, name: str) -> Fault:
    """Hold the next commit of rows of that table, the second one of a batch into the output.

    The queue has no rows written by the job: then it is the commit of output rows.
    """
    faults, settings = cluster.client.faults, stream.settings
    path = settings.ledger if name == "ledger" else settings.output
    method = "AdvanceConsumer" if name == "consumer" else "ModifyRows"
    where = {} if name == "consumer" else {"path": path}
    skip = 0 if name in ("consumer", "ledger") else 1
    written = faults.add(method=method, where=where, skip=skip, action="delay", seconds=0)
    return faults.add(method="CommitTransaction", armed_by=written, action="hold")


def _mount_anew(stream: Stream, name: str, *, is_cut: bool) -> None:
    settings, client = stream.settings, stream.client
    path = settings.queues[0] if name == "queue" else str(getattr(settings, name))
    any_client: Any = client
    any_client.unmount_table(path, sync=True)
    if is_cut and client.get(f"{path}/@sorted"):
        first = client.get(f"{path}/@schema")[0]
        pivot = "m" if first["type"] in ("string", "utf8") else 1
        any_client.reshard_table(path, [[], [pivot]], sync=True)
    elif is_cut:
        count = int(client.get(f"{path}/@tablet_count"))
        any_client.reshard_table(path, tablet_count=count + 1, sync=True)
    any_client.mount_table(path, sync=True)
