"""What breaks SPYT's own mode, with the job's cure and without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_rows_trimmed_before_they_were_read(stream: Any, cured: bool) -> None:
    """SPYT counts rows from the offset it asked for and gets the first ones there are, again."""
    stream.send(2_000)
    stream.client.trim_rows(stream.settings.queues[0], 0, 100)
    if cured:
        stream.settings = replace(stream.settings, start_from="earliest")
        stream.recover()
        stream.drain()
        outcome = stream.outcome()
        assert (outcome.lost, outcome.duplicated) == (100, 0)
    else:
        stream.drain()
        assert stream.outcome().duplicated == 100


def test_a_gap_is_skipped_on_demand_and_nothing_repeats(stream: Any) -> None:
    stream.send(2_000)
    stream.recover()
    stream.drain()
    stream.send(2_000)
    queue = stream.settings.queues[0]
    stream.client.trim_rows(queue, 0, 600)
    with pytest.raises(stream.module("errors").JobError, match="100 rows"):
        stream.recover()
    stream.settings = replace(stream.settings, on_data_loss="skip")
    assert any("trimmed" in note for note in stream.recover())
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
    stream.client.remove(stream.settings.checkpoint, recursive=True)
    stream.client.create("map_node", stream.settings.checkpoint)
    assert any("is gone" in note for note in stream.recover())
    stream.send(1_000)
    stream.drain()
    outcome = stream.outcome()
    assert outcome.lost == 0
    # The consumer is a batch behind: its rows come again.
    assert outcome.duplicated == 1_000 * len(stream.settings.queues)


def test_a_checkpoint_of_another_job_is_refused_before_anything_is_written(stream: Any) -> None:
    stream.send(100)
    stream.recover()
    positions = stream.module("positions")
    marker = dict(stream.client.get(f"{stream.settings.checkpoint}/@{positions.MARKER}"))
    stream.client.set(
        f"{stream.settings.checkpoint}/@{positions.MARKER}", {**marker, "job": "another"}
    )
    with pytest.raises(stream.module("errors").JobError, match="belongs to another job"):
        stream.recover()
    assert stream.found().total() == 0
