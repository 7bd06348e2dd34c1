"""A checkpoint that holds offsets alone: losses that it survives, and what is said of them."""

from __future__ import annotations

import pytest

from tests.ytstream.helpers import StreamOf, refusal

pytestmark = pytest.mark.spark

for_each = pytest.mark.parametrize("guarantee", ["transactional", "idempotent", "at_least_once"])


@for_each
def test_a_gap_is_skipped_on_demand_and_nothing_repeats(
    stream_of: StreamOf, guarantee: str
) -> None:
    stream = stream_of(guarantee)
    stream.send(400)
    stream.recover()
    stream.drain()
    stream.send(400)
    stream.client.trim_rows(stream.settings.queues[0], 0, 120)
    assert "20 rows" in refusal(stream.recover)
    stream.configure(on_data_loss="skip")
    assert any("trimmed" in note for note in stream.recover())
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (20, 0)


def test_a_gap_before_the_first_batch_begins_the_checkpoint_behind_it(
    stream_of: StreamOf,
) -> None:
    stream = stream_of("at_least_once", "join")
    stream.send(400)
    stream.recover()
    stream.client.trim_rows(stream.settings.queues[0], 0, 50)
    stream.configure(on_data_loss="skip")
    assert any("trimmed" in note for note in stream.recover())
    assert stream.recover() == []
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (50, 0)


@for_each
def test_a_lost_checkpoint_is_said_and_nothing_is_lost(stream_of: StreamOf, guarantee: str) -> None:
    queues = 2 if guarantee == "at_least_once" else 1
    stream = stream_of(guarantee, "map", queues)
    stream.send(200)
    stream.recover()
    assert stream.recover() == []  # nothing has run yet, nothing is gone
    stream.drain()
    stream.send(200)
    stream.drain()
    stream.forget()
    assert any("is gone" in note for note in stream.recover())
    stream.send(200)
    stream.drain()
    outcome = stream.outcome()
    # The consumer of a job without transactions is a batch behind: its rows come again.
    repeated = 200 * queues if guarantee == "at_least_once" else 0
    assert (outcome.lost, outcome.duplicated) == (0, repeated)
