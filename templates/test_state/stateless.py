"""A checkpoint that holds offsets alone: what it survives, and when it may not be used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from stream import Stream

from demo.__main__ import MAY_REPEAT


def _is_exact(stream: Stream) -> bool:
    outcome = stream.outcome()
    return (outcome.lost, outcome.duplicated) == (0, 0)


def test_a_gap_is_skipped_on_demand_and_nothing_repeats(stream: Any) -> None:
    stream.send(2_000)
    stream.recover()
    stream.drain()
    stream.send(2_000)
    stream.client.trim_rows(stream.settings.queues[0], 0, 600)
    with pytest.raises(stream.module("errors").JobError, match="100 rows"):
        stream.recover()
    stream.settings = replace(stream.settings, on_data_loss="skip")
    assert any("trimmed" in note for note in stream.recover())
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (100, 0)


def test_a_gap_before_the_first_batch_begins_the_checkpoint_behind_it(stream: Any) -> None:
    stream.send(1_000)
    stream.recover()
    stream.client.trim_rows(stream.settings.queues[0], 0, 100)
    stream.settings = replace(stream.settings, on_data_loss="skip")
    assert any("trimmed" in note for note in stream.recover())
    assert stream.recover() == []
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (100, 0)


def test_a_lost_checkpoint_is_said_and_nothing_is_lost(stream: Any) -> None:
    stream.send(1_000)
    stream.recover()
    assert stream.recover() == []  # nothing has run yet, nothing is gone
    stream.drain()
    stream.send(1_000)
    stream.drain()
    stream.forget()
    assert any("is gone" in note for note in stream.recover())
    stream.send(1_000)
    stream.drain()
    if MAY_REPEAT:  # the consumer is a batch behind: its rows come again
        outcome = stream.outcome()
        repeated = 1_000 * len(stream.settings.queues)
        assert (outcome.lost, outcome.duplicated) == (0, repeated)
    else:
        assert _is_exact(stream)


def test_a_checkpoint_of_another_job_is_refused_before_anything_is_written(stream: Any) -> None:
    stream.send(100)
    stream.recover()
    stream.client.set(f"{stream.settings.checkpoint}/@ytstream_job/job", "another")
    with pytest.raises(stream.module("errors").JobError, match="belongs to another job"):
        stream.recover()
    assert stream.found().total() == 0
