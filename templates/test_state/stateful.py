"""State: what it survives, when it may not be used, and what is said about it."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

import pytest
from stream import Stream, settle, wait
from yt.yson import YsonUint64

from demo.bids import EVENT_TIME, bids
from demo.scenario import drained


def test_a_lost_state_is_refused_and_rewind_is_the_way_out(stream: Any) -> None:
    stream.send(1_000)
    stream.recover()
    assert stream.recover() == []  # nothing has run yet, nothing is lost
    # The consumer may be a batch behind: two batches move it for certain.
    stream.drain()
    stream.send(1_000)
    stream.drain()
    stream.forget()
    with pytest.raises(stream.module("errors").JobError, match="the state with it"):
        stream.recover()
    stream.module("maintenance").rewind(stream.client, stream.settings, "latest", [])
    for _ in range(2):
        assert not any("is gone" in note for note in stream.recover())
    stream.send(1_000)
    stream.drain()
    stream.send(1_000)
    stream.drain()
    stream.forget()
    with pytest.raises(stream.module("errors").JobError, match="the state with it"):
        stream.recover()


def test_a_gap_before_the_first_batch_begins_the_checkpoint_behind_it(stream: Any) -> None:
    stream.send(1_000)
    stream.recover()
    stream.client.trim_rows(stream.settings.queues[0], 0, 100)
    stream.settings = replace(stream.settings, on_data_loss="skip")
    assert any("trimmed" in note for note in stream.recover())
    assert stream.recover() == []


def test_an_older_checkpoint_that_was_restored_is_refused(stream: Any) -> None:
    checkpoint = stream.settings.checkpoint
    stream.send(500)
    stream.recover()
    stream.drain()
    stream.client.copy(checkpoint, f"{checkpoint}.old")
    for _ in range(3):
        stream.send(500)
        stream.drain()
    stream.client.remove(checkpoint, recursive=True)
    stream.client.move(f"{checkpoint}.old", checkpoint)
    with pytest.raises(stream.module("errors").JobError, match="moved"):
        stream.recover()


def test_a_state_that_is_cut_otherwise_is_refused(
    stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.send(100)
    stream.recover()
    stream.drain()
    monkeypatch.setattr(stream.module("state"), "SHUFFLE_PARTITIONS", 3)
    with pytest.raises(stream.module("errors").JobError, match="back to 8"):
        stream.recover()


@pytest.fixture
def said(stream: Any, caplog: pytest.LogCaptureFixture) -> Any:
    """A function that runs until drained and returns what the job's log then says."""

    def drain_and_listen() -> str:
        caplog.clear()
        with caplog.at_level(logging.INFO, "job"), stream.running() as query:
            wait(drained(stream.client, stream.settings), query)
            settle(query)
            stream.module("monitor").Monitor(query).report()
        return caplog.text

    return drain_and_listen


def _odd(stream: Stream, rows: list[dict[str, Any]]) -> None:
    """Send rows that are not to have an effect."""
    before = list(stream.sent)
    stream.publish(rows)
    stream.sent = before


def _is_exact(stream: Stream) -> bool:
    outcome = stream.outcome()
    return (outcome.lost, outcome.duplicated) == (0, 0)


def test_late_rows_are_left_out_and_counted(stream: Any, said: Any) -> None:
    stream.send(3_000)
    stream.recover()
    stream.drain()
    # A row is late by the watermark under which the batch before ran: Spark writes the windows that
    # a batch closes at its end.
    stream.send(100)
    stream.drain()
    _odd(stream, list(bids(50, seed=777)))
    assert "rows came after the watermark" in said()
    stream.close()
    assert _is_exact(stream)


def test_rows_from_the_future_are_left_out_and_counted(stream: Any, said: Any) -> None:
    stream.send(500)
    stream.recover()
    stream.drain()
    tomorrow = YsonUint64((int(time.time()) + 86_400) * 1_000_000)
    _odd(stream, [{**row, EVENT_TIME: tomorrow} for row in bids(3, seed=777)])
    assert "left out: 3 from the future" in said()
    stream.send(500)
    stream.close()
    assert _is_exact(stream)


def test_a_state_that_grows_is_said_with_its_size(
    stream: Any, said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.send(500)
    stream.recover()
    assert "WARNING" not in said()
    monkeypatch.setattr(stream.module("state"), "LARGE_STATE_BYTES", 1)
    stream.send(500)
    assert "WARNING: the state has grown to" in said()
