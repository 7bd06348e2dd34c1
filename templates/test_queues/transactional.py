"""Several queues: what their order is worth, and what a crash between the logs does to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from stream import die_between_the_logs, several_triggers


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
        # A batch that was pending would end where the other queue's batch was to end.
        with stream.running() as query:
            several_triggers(query, stream)
        assert stream.outcome().duplicated == 0


def test_the_settings_sort_the_queues(stream: Any) -> None:
    assert list(stream.settings.queues) == sorted(stream.settings.queues)


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_death_between_the_logs_with_rows_in_one_queue_after_it(
    stream: Any, cluster: Any, cured: bool
) -> None:
    """The other queue's consumer is moved over rows that nobody read."""
    stream.send(1_000)
    stream.recover()
    die_between_the_logs(stream, cluster, batch=0)
    stream.send(1_000, queues=(0,))
    if cured:
        stream.recover()
        stream.drain()
        outcome = stream.outcome()
        assert (outcome.lost, outcome.duplicated) == (0, 0)
    else:
        with stream.running() as query:
            several_triggers(query, stream)
        assert stream.outcome().lost == 1_000
