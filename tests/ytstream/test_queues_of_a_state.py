"""A queue comes to a job with state, or goes, and the state is kept; with Spark and SPYT.

test_start.py plays the same without Spark, under every guarantee and with deaths between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from minicluster.testing import Running
from tests.ytstream import mutants
from tests.ytstream.helpers import (
    MIGRATED,
    StreamOf,
    another_process,
    die_between_the_logs,
    head_of,
    refusal,
    run_until_it_fails,
)
from ytstream import provision
from ytstream.config import late_rows_of
from ytstream.recovery import checkpoint, operator
from ytstream.testing.stream import Stream

pytestmark = pytest.mark.spark


def _name(stream: Stream, *names: str) -> None:
    """Name these queues in the configuration, and accept that rows of theirs may be late."""
    folder = stream.settings.queues[0].rpartition("/")[0]
    queues = tuple(sorted(f"{folder}/{name}" for name in names))
    stream.configure(queues=queues, accept=tuple(map(late_rows_of, queues)))
    provision.provision(stream.connection)


def _started(stream: Stream) -> Stream:
    """Read some rows of two queues in two batches."""
    _name(stream, "m", "p")
    for _ in range(2):
        stream.send(200)
        stream.drain()
    return stream


def _leave(stream: Stream) -> None:
    assert operator.migrate(stream.connection, stream.tablets)[-1] == MIGRATED


def _grow(stream: Stream) -> None:
    """Send rows into all queues, and read them in another process."""
    stream.send(200)
    another_process(stream).drain()


def test_queues_come_and_go(stream_of: StreamOf, cluster: Running) -> None:
    """Each time windows are open that have rows from before and from after."""
    stream = _started(stream_of("transactional", "window"))
    stream.send(200)
    planned = die_between_the_logs(stream, cluster)  # its entry in the log is of two sources
    assert planned in checkpoint.numbers(stream.client, f"{stream.folder}/offsets")
    _name(stream, "m", "p", "z")
    _grow(stream)
    _name(stream, "a", "m", "p", "z")
    _grow(stream)
    _name(stream, "a", "p", "z")
    assert "does not name any more" in refusal(stream.recover)
    _leave(stream)
    _grow(stream)
    _name(stream, "b", "p", "z")
    _leave(stream)
    _grow(stream)
    _name(stream, "b", "m", "p", "z")  # back
    _grow(stream)
    another_process(stream).close()
    assert stream.is_exact()
    assert len(head_of(stream).removed) == 1
