"""The row that says that a start has found nothing to read: `submit` waits for it."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.helpers import StreamOf
from ytstream.ledger import ledger_rows
from ytstream.query.idle_signal import IdleSignal
from ytstream_tools.testing.job_stream import Stream, wait


def _rows(stream: Stream) -> list[Any]:
    return list(stream.client.select_rows(ledger_rows.look_query(stream.settings.ledger)))


@pytest.mark.spark
def test_a_start_that_finds_nothing_says_so_once(stream_of: StreamOf) -> None:
    stream = stream_of("transactional")
    stream.recover()
    first = IdleSignal(stream.context)
    with stream.running() as query:

        def looked() -> bool:
            first.look(query, stream.epoch, time.monotonic())
            return first.is_over

        wait(looked, query)
    assert [int(row["epoch"]) for row in _rows(stream)] == [stream.epoch.number]


@pytest.mark.spark
def test_rows_that_wait_and_a_trigger_under_way_are_no_first_look(stream_of: StreamOf) -> None:
    stream = stream_of("transactional")
    stream.recover()
    stream.send(4)
    for message, active in (("Waiting for next trigger", False), ("Initializing sources", False),
                            ("Waiting for data to arrive", True)):  # fmt: skip
        status = {"message": message, "isTriggerActive": active, "isDataAvailable": False}
        query = cast(StreamingQuery, SimpleNamespace(status=status))
        first = IdleSignal(stream.context)
        first.look(query, stream.epoch, time.monotonic())
        assert not first.is_over
    assert _rows(stream) == []
