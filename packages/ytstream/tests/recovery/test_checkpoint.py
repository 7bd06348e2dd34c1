"""Losses in a checkpoint that the job survives, with Spark.

test_start plays more of them, without it.
"""

from __future__ import annotations

import pytest

from tests.support.helpers import StreamOf, another_process, refusal, sampled

pytestmark = pytest.mark.spark

GUARANTEES = [("transactional",), ("idempotent",), ("at_least_once",)]
"""The others without Spark in test_start.py, and with it in `make journeys`."""


@pytest.mark.parametrize("guarantee", sampled(GUARANTEES, [("transactional",)]))
def test_a_gap_is_skipped_on_demand_and_nothing_repeats(
    stream_of: StreamOf, guarantee: str
) -> None:
    stream = stream_of(guarantee)
    stream.send(400)
    stream.drain()
    stream.send(400)
    stream.client.trim_rows(stream.settings.queues[0], 0, 120)
    assert "20 rows" in refusal(stream.recover)
    stream.configure(on_data_loss="skip")
    assert any("trimmed" in note for note in stream.recover())
    stream.drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (20, 0)


@pytest.mark.parametrize("guarantee", sampled(GUARANTEES, [("at_least_once",)]))
def test_a_lost_checkpoint_loses_and_repeats_nothing(stream_of: StreamOf, guarantee: str) -> None:
    stream = stream_of(guarantee, "map", 2 if guarantee == "at_least_once" else 1)
    for _ in range(2):
        stream.send(200)
        stream.drain()
    stream.client.remove(stream.folder, recursive=True)
    stream.send(200)
    stream.drain()
    assert stream.is_exact()


@pytest.mark.thorough
def test_a_state_goes_on_though_the_querys_id_is_lost(stream_of: StreamOf) -> None:
    """Spark 4.2 refuses such a checkpoint (SPARK-55058)."""
    stream = stream_of("transactional", "aggregate")
    stream.send(200)
    stream.drain()
    stream.client.remove(f"{stream.folder}/metadata")
    stream.send(200)
    another_process(stream).close()
    assert stream.is_exact()
