"""Several queues: what their order and their names are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import functions as F
from stream import several_triggers


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_queues_in_another_order(stream: Any, cured: bool) -> None:
    """Spark matches queues and offsets by position, and SPYT ignores the path in an offset."""
    stream.send(2_000, queues=(0,))
    stream.send(1_000, queues=(1,))
    stream.recover()
    stream.drain()
    stream.send(1_000)
    stream.settings = replace(stream.settings, queues=stream.settings.queues[::-1])
    if cured:
        with pytest.raises(stream.module("errors").JobError, match="knows its queues by position"):
            stream.recover()
    else:
        with stream.running() as query:
            several_triggers(query, stream)
        outcome = stream.outcome()
        assert outcome.lost > 0


def test_the_settings_sort_the_queues(stream: Any) -> None:
    assert list(stream.settings.queues) == sorted(stream.settings.queues)


def test_without_the_queues_name_positions_collide(stream: Any) -> None:
    """Two queues have the same positions: the key must tell them apart, and the plan must show
    it."""
    guarantee, pipeline = stream.module("guarantee"), stream.module("pipeline")
    rows = pipeline.transform(stream.module("events").events(stream.spark, stream.settings))
    with pytest.raises(stream.module("errors").JobError, match="queue_id is lost"):
        guarantee.admit(rows.drop("queue_id"), stream.settings)
    with pytest.raises(stream.module("errors").JobError, match="queue_id is computed"):
        guarantee.admit(rows.withColumn("queue_id", F.upper("queue_id")), stream.settings)
