"""The whole job on the minicluster: queues, SPYT, checkpoint, output table."""

from __future__ import annotations

import pytest

from tests.support.examples import PAIRS, STATEFUL
from tests.support.helpers import StreamOf
from ytstream.settings.job_settings import SPYT

pytestmark = pytest.mark.spark

AGAIN = [("at_least_once", kind) for kind in STATEFUL]


def _left_out(guarantee: str, processing: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a pair that `make test` leaves out: a neighbour says the same."""
    if (guarantee, processing) in AGAIN:
        return [pytest.mark.journey]
    is_again = processing == "join" and guarantee != "transactional"
    return [pytest.mark.thorough] if is_again or guarantee == "idempotent" else []


@pytest.mark.each_case
@pytest.mark.parametrize(
    ("guarantee", "processing", "queues"),
    # One and two queues in turn; the keys of idempotent differ, so it has both.
    # With state, each kind once: its guarantee changes nothing of what it computes.
    [
        *(
            pytest.param(
                *(*pair, 1 + number % 2),
                marks=_left_out(*pair),
            )
            for number, pair in enumerate(PAIRS)
        ),
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


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [SPYT], indirect=True)
@pytest.mark.parametrize(
    ("guarantee", "processing"),
    [("transactional", "window"), ("idempotent", "map"), ("at_least_once", "map")],
)
def test_so_it_is_with_spyts_connector(
    stream_of: StreamOf, guarantee: str, processing: str, connector: str
) -> None:
    test_every_row_arrives_once_and_right_over_two_runs(stream_of, guarantee, processing, 1)
