"""How long the parts of a batch took is in its row of the ledger."""

from __future__ import annotations

import pytest

from minicluster.testing import Running
from tests.support.helpers import StreamOf
from ytstream.ledger.ledger_rows import times_of
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import settle, wait

pytestmark = pytest.mark.spark

HELD = 0.5
"""Seconds for which the cluster holds each request."""


@pytest.mark.parametrize(
    ("method", "part"), [("ModifyRows", "write"), ("CommitTransaction", "commit")]
)
def test_a_part_that_the_cluster_makes_slow_takes_as_long(
    stream_of: StreamOf, cluster: Running, method: str, part: str
) -> None:
    """Of two batches the second one: it says how long the commit of the first one took."""
    stream = stream_of("transactional")
    where = {"path": stream.settings.output} if part == "write" else {}
    cluster.client.faults.add(method=method, where=where, action="delay", seconds=HELD, times=None)
    with stream.running() as query:
        for _ in range(2):
            stream.send(20)
            wait(drained(stream.context), query)
            settle(query)
    query_ = f'number, state from [{stream.settings.ledger}] where kind = "batch"'
    rows = sorted(stream.client.select_rows(query_), key=lambda row: int(row["number"]))
    times = times_of(rows[-1])
    assert times is not None
    assert getattr(times, part) >= 1000 * HELD
