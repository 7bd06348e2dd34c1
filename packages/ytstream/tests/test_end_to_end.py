"""The whole job on the minicluster: queues, SPYT, checkpoint, output table."""

from __future__ import annotations

import pytest

from packages.ytstream.tests.examples import PAIRS
from packages.ytstream.tests.helpers import StreamOf

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("guarantee", "processing", "queues"),
    # One and two queues in turn; the keys of idempotent differ, so it has both.
    [
        *((*pair, 1 + number % 2) for number, pair in enumerate(PAIRS)),
        ("idempotent", "map", 2),
    ],
)
def test_every_row_arrives_once_and_right_over_two_runs(
    stream_of: StreamOf, guarantee: str, processing: str, queues: int
) -> None:
    stream = stream_of(guarantee, processing, queues, rejects=True)
    stream.send(700)
    stream.drain()
    stream.send(700)
    stream.close()
    assert stream.is_exact()
    assert stream.found()
