"""Rejected rows leave with their task, or few come to the driver. Else all rows are read again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from py4j.protocol import Py4JJavaError

from minicluster.testing import Running
from tests.support.helpers import StreamOf, another_process, begin_at
from tests.support.server_errors import UNAVAILABLE
from ytstream import RestartableError
from ytstream.job import REJECTED
from ytstream.ledger.batch_row_ranges import RowRange
from ytstream.rejected import collected
from ytstream.schema.columns import rejected_columns
from ytstream.settings.job_settings import OWN, SPYT
from ytstream_tools.testing.job_stream import Stream

QUEUES = ("//a", "//b")
PLANNED = {"//a": {0: RowRange(0, 50), 3: RowRange(7, 9)}, "//b": {1: RowRange(7, 9)}}
COUNTS = {"odd": 1, "even": 2}
LINES = '0 0 49 1 {"text": "a b"}\n0 3 7 1 {}\n1 1 8 0 {"text": "\u2028\x85"}\n'


def test_rows_are_those_of_the_lines() -> None:
    assert collected.rows_of(LINES, COUNTS, PLANNED, QUEUES) == [
        ("//a", 0, 49, "even", '{"text": "a b"}'),
        ("//a", 3, 7, "even", "{}"),
        ("//b", 1, 8, "odd", '{"text": "\u2028\x85"}'),
    ]


@pytest.mark.parametrize(
    ("lines", "counts"),
    [
        pytest.param("\n", COUNTS, id="too long"),
        pytest.param("0 0 4 0 {}\n0 0 4 0 {}\n", {"odd": 2}, id="two attempts at a task"),
        pytest.param("0 0 4 0 {}\n", {"odd": 2}, id="a row without a line"),
        pytest.param("0 0 4 0 {}\n", {"odd": 0, "even": 1}, id="another reason"),
        pytest.param("0 2 4 0 {}\n", {"odd": 1}, id="another tablet"),
        pytest.param("1 1 9 0 {}\n", {"odd": 1}, id="another row"),
        pytest.param("=2\n", COUNTS, id="tasks have sent fewer rows"),
        pytest.param("=2\n0 0 4 0 {}\n", COUNTS, id="only some tasks have sent theirs"),
    ],
)
def test_lines_that_are_not_those_counted_and_planned_are_not_taken(
    lines: str, counts: dict[str, int]
) -> None:
    assert collected.rows_of(lines, counts, PLANNED, QUEUES) is None


def test_rows_that_their_tasks_have_sent_are_not_written_again() -> None:
    assert collected.rows_of("=2\n=1\n", COUNTS, PLANNED, QUEUES) == []


def test_more_rows_than_one_process_writes_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "MOST_ROWS", 2)
    assert collected.rows_of(LINES, COUNTS, PLANNED, QUEUES) is None


@pytest.mark.parametrize("queues", [1, 2])
def test_values_are_in_the_order_of_the_outputs_columns(queues: int) -> None:
    columns = rejected_columns(queues)
    row = ("//a", 3, 7, "odd", "{}")
    (values,) = collected.values([row], columns, datetime(2024, 1, 1, tzinfo=UTC))
    named = dict(zip((column.name for column in columns), values, strict=True))
    assert named.pop("time") == 1_704_067_200_000_000
    assert named.pop("queue_id", "//a") == "//a"
    assert named == {"tablet_index": 3, "row_index": 7, "reason": "odd", "row": "{}"}


# -- in a stream -----------------------------------------------------------------------------------


@contextmanager
def _pulls(cluster: Running) -> Iterator[list[int]]:
    """Count the pulls inside the block."""
    found: list[int] = []
    cluster.client.journal.clear()
    yield found
    found.append(sum(entry.method == "PullConsumer" for entry in cluster.client.journal()))


def _is_exact(stream: Stream) -> bool:
    return all((one.lost, one.duplicated) == (0, 0) for one in stream.outcomes().values())


def _tablets(stream: Stream) -> int:
    return sum(int(stream.client.get(f"{queue}/@tablet_count")) for queue in stream.settings.queues)


@pytest.mark.spark
@pytest.mark.parametrize("connector", [OWN], indirect=True)
@pytest.mark.parametrize(
    ("guarantee", "processing", "queues"),
    [
        pytest.param("transactional", "map", 1, marks=pytest.mark.journey),
        ("idempotent", "map", 3),
        pytest.param("at_least_once", "map", 2, marks=pytest.mark.journey),
        ("transactional", "window", 2),
    ],
)
def test_few_are_collected_and_many_are_read_once_more(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
    processing: str,
    queues: int,
    connector: str,
) -> None:
    stream = stream_of(guarantee, processing, queues, rejects=True)
    stream.send(300)
    with _pulls(cluster) as few:
        stream.drain()
    assert few == [_tablets(stream)]
    stream.send(300)
    monkeypatch.setattr(collected, "MOST_OF_A_TASK", 100)
    with _pulls(cluster) as many:
        stream.drain()
    assert many == [2 * few[0]]
    stream.close()
    assert _is_exact(stream)


@pytest.mark.spark
@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_tasks_send_the_rejected_rows_of_a_transaction_however_many_they_are(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch, connector: str
) -> None:
    def by_the_driver(*_: object) -> None:
        pytest.fail("the driver writes rejected rows")

    monkeypatch.setattr(collected, "values", by_the_driver)
    monkeypatch.setattr(collected, "MOST_OF_A_TASK", 1_000)
    monkeypatch.setattr(collected, "MOST", 100)
    stream = stream_of("transactional", "map", 2, rejects=True)
    stream.send(300)
    with _pulls(cluster) as found:
        stream.drain()
    assert found == [_tablets(stream)]  # no row was read once more
    assert _is_exact(stream)


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_the_lines_of_all_tasks_have_a_limit_too(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch, connector: str
) -> None:
    monkeypatch.setattr(collected, "MOST", 100)
    stream = stream_of("idempotent", "map", rejects=True)
    stream.send(300)
    with _pulls(cluster) as found:
        stream.drain()
    assert found == [2 * _tablets(stream)]
    assert _is_exact(stream)


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("connector", [SPYT], indirect=True)
def test_with_spyts_connector_all_rows_are_read_once_more(
    stream_of: StreamOf, cluster: Running, connector: str
) -> None:
    stream = stream_of("transactional", "map", rejects=True)
    stream.send(300)
    with _pulls(cluster) as found:
        stream.drain()
    assert found == [2 * _tablets(stream)]
    assert _is_exact(stream)


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_sparks_reports_do_not_hold_the_rows(stream_of: StreamOf, connector: str) -> None:
    """Spark logs them, and keeps the last hundred."""
    stream = stream_of("transactional", "map", rejects=True)
    stream.send(300)
    with stream.running() as query:
        while not (done := [p for p in query.recentProgress if p.numInputRows]):
            assert query.isActive
    (figures,) = (p.observedMetrics[REJECTED] for p in done[:1])
    assert len(figures["lines"]) == 36  # a UUID
    assert _is_exact(stream)


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("connector", [OWN], indirect=True)
@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once", "idempotent"])
def test_rejected_rows_that_cannot_be_written_are_written_by_the_next_start(
    stream_of: StreamOf, cluster: Running, guarantee: str, connector: str
) -> None:
    stream = stream_of(guarantee, "map", rejects=True)
    stream.send(300)
    where = {"path": stream.settings.outputs[REJECTED]}
    failed = cluster.client.faults.add(
        method="ModifyRows", where=where, action="fail", error=UNAVAILABLE
    )
    # In a transaction their task fails.
    with pytest.raises((RestartableError, Py4JJavaError), match="unable to synchronize"):
        stream.drain()
    assert cluster.client.faults.get(failed).hits
    another_process(stream).drain()
    lost = [one.lost for one in stream.outcomes().values()]
    repeated = [one.duplicated for one in stream.outcomes().values()]
    assert not any(lost)
    assert guarantee == "at_least_once" or not any(repeated)


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("most", [100, collected.MOST])
def test_rows_whose_numbers_have_no_sum(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Spark's sum is null then (try_sum, source.py)."""
    monkeypatch.setattr(collected, "MOST", most)
    stream = stream_of("idempotent", "map", 1, rejects=True)
    (queue,) = stream.settings.queues
    begin_at(queue, stream.client, 1 << 62)
    stream.send(300)
    stream.drain()
    assert _is_exact(stream)
