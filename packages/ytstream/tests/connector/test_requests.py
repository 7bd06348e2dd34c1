"""How many requests a batch makes through the runtime's own connector."""

from __future__ import annotations

from collections import Counter

import pytest

from minicluster.client import Entry
from minicluster.testing import Running
from tests.support.helpers import StreamOf
from ytstream.connector.java import each
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import OWN
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait

pytestmark = pytest.mark.spark

BATCHES = 4
"""Batches that are counted, after the first one, which asks for more."""
FIRST, MORE = 12, 2
"""Requests of a batch, and more for each of its partitions: to read it, and to move the consumer.
"""


@pytest.mark.parametrize("connector", [OWN], indirect=True)
@pytest.mark.parametrize("partitions", [4, 12])
def test_a_batch_makes_few_requests(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    connector: str,
    partitions: int,
) -> None:
    monkeypatch.setattr(job_objects, "LOCAL_QUEUE_TABLETS", partitions)
    stream = stream_of("transactional")
    stream.configure(max_rows_per_partition=50)
    stream.send(50 * partitions * (BATCHES + 2))
    cluster.client.journal.clear()
    with stream.running() as query:
        wait(drained(stream.context), query)
    counts = _per_batch(stream, [e for e in cluster.client.journal() if e.protocol == "rpc"])
    assert sum(counts.values()) <= FIRST + MORE * partitions, counts


@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_a_second_reading_asks_once_for_each_range(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch, connector: str
) -> None:
    """It has a task for each range: what a task asks for ahead, no other one gets."""
    partitions = 12
    monkeypatch.setattr(job_objects, "LOCAL_QUEUE_TABLETS", partitions)
    stream = stream_of("transactional")
    stream.configure(max_rows_per_partition=50)
    stream.send(50 * partitions * 2)
    with stream.running() as query:
        for count in (50 * partitions, partitions // 2):
            wait(drained(stream.context), query)
            leaves = each(query._jsq.streamingQuery().lastExecution().logical().collectLeaves())
            (rows,) = [leaf.rdd() for leaf in leaves if leaf.isStreaming()]
            cluster.client.journal.clear()
            assert rows.count() == count
            asked = [entry.args["partition"] for entry in cluster.client.journal("PullConsumer")]
            assert len(asked) == len({*asked}) == min(count, partitions)
            stream.send(partitions // 2)  # others have no row


def _per_batch(stream: Stream, requests: list[Entry]) -> dict[str, float]:
    """Return the requests of a batch by method."""
    heads = [
        number
        for number, entry in enumerate(requests)
        if entry.method == "ModifyRows" and entry.args.get("path") == stream.settings.ledger
    ]
    first, last = heads[-1 - BATCHES], heads[-1]
    counts = Counter(entry.method for entry in requests[first + 1 : last + 1])
    return {method: count / BATCHES for method, count in counts.items()}
