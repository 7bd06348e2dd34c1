"""Several queues: their order, and a crash between the logs."""

from __future__ import annotations

import pytest

from minicluster.testing import Running
from tests.ytstream.helpers import StreamOf, die_between_the_logs, refusal, several_triggers

pytestmark = pytest.mark.spark

with_and_without = pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])


@with_and_without
@pytest.mark.parametrize("guarantee", ["transactional", "idempotent", "at_least_once"])
def test_queues_in_another_order(
    stream_of: StreamOf, cluster: Running, guarantee: str, cured: bool
) -> None:
    """Spark matches queues and offsets by position, and SPYT ignores the path in an offset."""
    stream = stream_of(guarantee, "map", 2)
    stream.send(400, queues=(0,))
    stream.send(200, queues=(1,))
    stream.recover()
    stream.drain()
    stream.send(200)
    stream.configure(queues=stream.settings.queues[::-1])
    if cured:
        assert "knows its queues by position" in refusal(stream.recover)
        return
    with stream.running() as query:
        several_triggers(query, stream, cluster)
    if guarantee == "transactional":
        # A batch that was pending would end where the other queue's batch was to end.
        assert stream.outcome().duplicated == 0
    else:
        assert stream.outcome().lost > 0


@with_and_without
def test_death_between_the_logs_with_rows_in_one_queue_after_it(
    stream_of: StreamOf, cluster: Running, cured: bool
) -> None:
    """The other queue's consumer is moved over rows that were never read."""
    stream = stream_of("transactional", "map", 2)
    stream.send(200)
    stream.recover()
    die_between_the_logs(stream, cluster, batch=0)
    stream.send(200, queues=(0,))
    if cured:
        stream.recover()
        stream.drain()
        assert stream.is_exact()
    else:
        with stream.running() as query:
            several_triggers(query, stream, cluster)
        assert stream.outcome().lost == 200
