"""Several queues: what their order and their names are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
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
