"""A batch that is cut off: the state is exact all the same, and only whole results repeat."""

from __future__ import annotations

from typing import Any

from stream import wait_for_failure

from demo.expected import expected


def test_a_batch_that_runs_again_counts_nothing_twice(stream: Any, cluster: Any) -> None:
    """A write fails in a later batch; other writes of that batch are in the output already."""
    stream.send(3_000)
    stream.recover()
    stream.drain()
    stream.send(3_000)
    cluster.client.faults.add(
        method="ModifyRows",
        where={"path": stream.settings.output},
        skip=2,
        times=None,
        action="fail",
        error={"code": 1, "message": "the tablet is on strike"},
    )
    with stream.running() as query:
        wait_for_failure(query)
    cluster.client.faults.clear()
    stream.recover()
    stream.close()
    assert stream.outcome().lost == 0
    # What is there more than once is there more than once as a whole: no figure is wrong.
    assert stream.found().keys() == expected(stream.sent).keys()
