"""Kills of a job that runs in the tests' own session.

A process that is killed leaves the cluster as it was at that moment, its open transaction included.
So a request is held, the cluster's state kept, and loaded once the query has ended: whatever the
driver did after that moment has not happened. The next start is another process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException

from minicluster.client import Fault
from minicluster.testing import Running
from ytstream import JobError, RestartableError
from ytstream.recovery.epoch import Epoch
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait

FAILED = (RestartableError, Py4JJavaError, JobError, StreamingQueryException)
"""How a batch that was cut off shows."""
PLACES: tuple[Mapping[str, Any], ...] = (
    {"method": "ModifyRows"},
    {"method": "ModifyRows", "when": "after"},
    {"method": "AdvanceConsumer", "when": "after"},
    {"method": "CommitTransaction"},
    {"method": "CommitTransaction", "when": "after"},
)
"""Requests of a batch, before or after they are applied."""


def cut_off(stream: Stream, cluster: Running, **fault: Any) -> int:
    """Let a request of the next batch meet a fault, and run until it does; return whether it did.

    The start is over by then: its own requests meet nothing.
    """
    stream.recover()
    rule = _added(stream, cluster, **fault)
    with suppress(*FAILED):
        stream.drain()
    hits = cluster.client.faults.get(rule).hits
    cluster.client.faults.clear()
    return hits


def killed(stream: Stream, cluster: Running, folder: Path, **place: Any) -> int:
    """Kill the driver at a request of the next batch; return whether the request came."""
    client, state = cluster.client, str(folder / "killed.state")
    stream.recover()
    held = _added(stream, cluster, **place, action="delay")

    def is_hit() -> bool:
        return client.faults.get(held).hits > 0

    hits = 0
    with (
        suppress(*FAILED),
        _cleared(cluster),
        stream.running() as query,
        _cleared(cluster),  # or its batch does not end
    ):
        is_drained = drained(stream.context)
        wait(lambda: is_hit() or is_drained(), query)
        if hits := int(is_hit()):
            client.save(state)
    if hits:
        now = client.clock.now()
        client.load(state)
        client.clock.advance(max(0.0, now - client.clock.now()))
        stream.epoch = Epoch()
    return hits


@contextmanager
def _cleared(cluster: Running) -> Iterator[None]:
    """Take all orders back in the end."""
    try:
        yield
    finally:
        cluster.client.faults.clear()


def _added(stream: Stream, cluster: Running, **fault: Any) -> Fault:
    """Order what a request of a batch meets. Of commits it is the batch's, and no reader's."""
    faults = cluster.client.faults
    if fault["method"] == "CommitTransaction":
        fault["armed_by"] = faults.add(
            method="ModifyRows",
            where={"path": stream.settings.ledger},
            action="delay",
            seconds=0,
        )
    return faults.add(**fault)
