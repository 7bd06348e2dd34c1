"""How large the next batch is, by the time that batches take."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minicluster.testing import Running
from tests.support.helpers import StreamOf
from ytstream.query import pace
from ytstream.query.pace import Pace
from ytstream.settings.job_settings import OWN, SPYT
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import wait

Cluster = Callable[[int], float]
"""Seconds of a batch that has read so many rows of a partition."""
WANTED, MOST = 10.0, 1_000_000


def _warm(rows: int) -> Pace:
    """Return a pace whose query has its first batch behind it."""
    return Pace(WANTED, MOST, rows, is_warm=True)


def _limits(
    cluster: Cluster, *, most: int = MOST, waiting: int = 10**9, batches: int = 20
) -> list[int]:
    """Return the limits of successive batches; so many rows wait in a partition."""
    found, paced = [], pace.first(WANTED, most)
    for _ in range(batches):
        found.append(paced.rows)
        read = min(paced.rows, waiting)
        waiting -= read
        paced = paced.after(read, cluster(read))
    return found


@pytest.mark.parametrize("fixed", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("a_row", [1e-5, 1e-4, 1e-3])
def test_batches_of_a_backlog_come_to_take_the_seconds_wanted(fixed: float, a_row: float) -> None:
    def cluster(read: int) -> float:
        return fixed + read * a_row

    limits = _limits(cluster)
    assert all(cluster(rows) < WANTED * 1.01 for rows in limits)
    assert cluster(limits[-1]) == pytest.approx(WANTED, rel=0.05)
    # An outage costs a few small batches.
    assert cluster(limits[8]) > WANTED / 2


def test_no_batch_is_larger_than_the_tables_are_made_for() -> None:
    assert max(_limits(lambda read: 0.1, most=20_000)) == 20_000
    assert _limits(lambda read: 0.1, most=10) == [10] * 20


def test_a_slow_cluster_makes_batches_smaller_at_once() -> None:
    assert _warm(50_000).after(50_000, 25.0).rows == 20_000
    # One batch that hung for minutes says little of the next one.
    assert _warm(50_000).after(50_000, 1_000.0).rows == 6_250


def test_a_batch_is_never_without_rows() -> None:
    assert _warm(1).after(1, 1_000.0).rows == 1


def test_a_batch_that_found_few_rows_makes_none_larger() -> None:
    assert _warm(5_000).after(4_999, 0.1).rows == 5_000
    assert _warm(5_000).after(0, 12.0).rows == 5_000


def test_a_batch_of_few_rows_that_was_slow_makes_the_next_smaller() -> None:
    assert _warm(5_000).after(4_000, 20.0).rows == 2_000


def test_the_first_batch_of_a_query_teaches_nothing() -> None:
    """It makes Spark's plan, for seconds."""
    assert pace.first(WANTED, MOST, 8_000).after(8_000, 9_000.0).rows == 8_000


@pytest.mark.parametrize(("fixed", "wanted"), [(1.0, 0.5), (0.45, 0.5), (4.0, 0.6)])
def test_a_wish_below_what_a_batch_costs_ends_at_batches_that_are_worth_it(
    fixed: float, wanted: float
) -> None:
    """They would shrink to one row: half of a batch's time is for its rows."""
    a_row, paced = 1e-5, pace.first(wanted, MOST)
    for _ in range(40):
        paced = paced.after(paced.rows, fixed + paced.rows * a_row)
    assert paced.rows * a_row == pytest.approx(fixed, rel=0.05)
    assert paced.shortest == pytest.approx(2 * fixed, rel=0.05)


def test_a_wish_that_can_be_met_is_no_warning() -> None:
    paced = pace.first(WANTED, MOST)
    for _ in range(20):
        paced = paced.after(paced.rows, 0.3 + paced.rows * 1e-4)
    assert paced.shortest is None


def test_a_failure_makes_the_next_query_begin_smaller() -> None:
    assert pace.after_failure(50_000) == 25_000
    assert pace.after_failure(1_200) == pace.FIRST_ROWS
    assert pace.after_failure(300) == 300


# -- in a stream -----------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_batches_follow_the_pace(
    stream_of: StreamOf, cluster: Running, guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They grow from small ones, up to `max_rows_per_partition`, and no row is lost or repeated."""
    monkeypatch.setattr(pace, "FIRST_ROWS", 10)
    stream = stream_of(guarantee)
    stream.configure(connector=OWN, batch_seconds=20.0, max_rows_per_partition=200)
    stream.send(1_500)
    stream.drain()
    rows = stream.client.select_rows(
        f'queues, state from [{stream.settings.ledger}] where kind = "batch"'
        " order by number limit 9"
    )
    read, limits = [], []
    for row in rows:
        ranges = [end - first for first, end in row["queues"][0]["rows"].values()]
        read.append(max(ranges))
        limits.append(row["state"]["limit"])
    assert limits[:5] == [10, 10, 40, 160, 200]
    assert read[:4] == [10, 10, 40, 160]
    assert stream.is_exact()


@pytest.mark.spark
def test_a_backlog_is_read_without_pauses(stream_of: StreamOf) -> None:
    """Spark's trigger alone would wait an hour before the second batch."""
    stream = stream_of("transactional")
    stream.configure(connector=OWN, trigger_seconds=3600.0, max_rows_per_partition=100)
    stream.send(1_000)
    stream.drain()
    assert stream.is_exact()


@pytest.mark.thorough
@pytest.mark.spark
def test_without_a_pace_a_batch_has_the_rows_of_the_settings(stream_of: StreamOf) -> None:
    """Also after a query that had one."""
    stream = stream_of("transactional")
    stream.configure(connector=OWN, batch_seconds=20.0)
    with stream.running() as query:
        wait(drained(stream.context), query)
    stream.configure(batch_seconds=None, max_rows_per_partition=2_000)
    stream.send(4_000)
    stream.drain()
    rows = stream.client.select_rows(
        f'rows_read from [{stream.settings.ledger}] where kind = "batch" order by number limit 9'
    )
    assert max(row["rows_read"] for row in rows) == 4_000


@pytest.mark.spark
def test_spyts_source_knows_no_pace(stream_of: StreamOf) -> None:
    from ytstream.connector import choose_connector

    stream = stream_of("transactional")
    stream.configure(connector=SPYT, batch_seconds=20.0)
    assert "batch_seconds has no effect" in choose_connector.line(stream.spark, stream.settings)
