"""A job that was written by hand is taken over: docs/from-spyt.md."""

from __future__ import annotations

import pytest

from tests.support.helpers import StreamOf
from ytstream.recovery import repositioning
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark


def _read_by_hand(stream: Stream, rows: int) -> None:
    """Leave the consumer as a hand-written job does: with no ledger and no mark."""
    (queue,) = stream.settings.queues
    for partition in range(4):
        stream.client.advance_queue_consumer(stream.settings.consumer, queue, partition, None, rows)


@pytest.mark.parametrize("guarantee", ["transactional", "idempotent", "at_least_once"])
def test_it_goes_on_where_the_old_consumer_is(stream_of: StreamOf, guarantee: str) -> None:
    stream = stream_of(guarantee)
    stream.send(80)
    _read_by_hand(stream, 15)
    stream.drain()
    assert stream.found().total() == 80 - 4 * 15


def test_it_goes_to_named_rows_before_its_first_start(stream_of: StreamOf) -> None:
    stream = stream_of("transactional")
    stream.send(80)
    _read_by_hand(stream, 15)
    (queue,) = stream.settings.queues
    repositioning.rewind(stream.context, stream.tablets, "rows", [f"{queue}:0=18"])
    stream.drain()
    assert stream.found().total() == 80 - 18 - 3 * 15
