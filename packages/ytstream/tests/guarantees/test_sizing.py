"""How many rows tablets bear, and where a table has to be cut for a batch."""

from __future__ import annotations

import random

import pytest

from ytstream.guarantees import sizing

LIMIT = 100_000


@pytest.mark.parametrize(
    ("rows", "write_batch", "tablets"),
    [(200_000, 1_000, 4), (500_000, 2_000, 11), (1_000_000, 5_000, 42), (5_000_000, 1_000, 92)],
)
def test_the_fewest_tablets_that_bear_a_batch(rows: int, write_batch: int, tablets: int) -> None:
    assert sizing.enough_tablets(rows, write_batch) == tablets
    assert sizing.overflow_risk(rows, write_batch, tablets) <= sizing.RISK
    assert sizing.overflow_risk(rows, write_batch, tablets - 1) > sizing.RISK


def test_writes_larger_than_the_limit_fit_no_number_of_tablets() -> None:
    assert sizing.enough_tablets(200_000, 50_000) is None
    assert sizing.enough_tablets(200, 51, 50) is None


@pytest.mark.parametrize("tablets", [1, 4, 12, 100, 1_000])
@pytest.mark.parametrize("write_batch", [1, 400, 5_000, 100_000])
def test_what_tablets_bear_is_the_most_with_an_accepted_risk(
    tablets: int, write_batch: int
) -> None:
    rows = sizing.borne(tablets, write_batch)
    assert rows >= LIMIT
    assert sizing.overflow_risk(rows, write_batch, tablets) <= sizing.RISK
    assert sizing.overflow_risk(rows + 1, write_batch, tablets) > sizing.RISK


def test_the_risk_is_what_chance_gives() -> None:
    """The bound is above the frequency of overflows, and not by much."""
    source, rows, write, tablets, limit = random.Random(1), 600, 10, 10, 100
    times = 2_000
    overflows = 0
    for _ in range(times):
        drawn = [source.randrange(tablets) for _ in range(rows // write)]
        overflows += any(drawn.count(tablet) * write > limit for tablet in range(tablets))
    risk = sizing.overflow_risk(rows, write, tablets, limit)
    assert overflows / times < risk * 1.1
    assert risk < 2 * overflows / times


def test_a_batch_within_the_limit_is_no_risk() -> None:
    assert sizing.overflow_risk(LIMIT, 50_000, 1) == 0
    assert sizing.overflow_risk(LIMIT + 1, 50_000, 1) == 1


def test_a_table_is_cut_where_the_batch_fills_it_too_much() -> None:
    """The pivots that are there stay; tablets that have room stay whole."""
    keys = [(1, number) for number in range(1_000)]
    pivots: list[sizing.Key] = [(), (0,), (1, 900), (2,)]
    cut = sizing.split(keys, pivots, rows=450_000)
    assert set(pivots) < set(cut)
    assert cut == sorted(cut)
    assert cut[-2:] == [(1, 900), (2,)]
    assert sizing.fullest(keys, pivots, 450_000) == 405_000
    assert sizing.fullest(keys, cut, 450_000) <= LIMIT / 2
    assert sizing.split(keys, cut, rows=450_000) == cut


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_however_keys_lie_no_tablet_gets_too_many_of_them(size: int) -> None:
    source = random.Random(size)
    keys = sorted({(source.choice("ab"), source.randrange(10**6)) for _ in range(size)})
    limit = max(1, size // 5)
    cut = sizing.split(keys, [()], len(keys), limit)
    assert cut[0] == ()
    assert sizing.fullest(keys, cut, len(keys)) <= max(1, limit)


def test_a_sample_is_as_good() -> None:
    source = random.Random(2)
    keys = [(number,) for number in range(300_000)]
    sample = sorted(source.sample(keys, 5_000))
    cut = sizing.split(sample, [()], len(keys))
    assert sizing.fullest(keys, cut, len(keys)) < LIMIT


def test_no_rows_fill_nothing() -> None:
    assert sizing.fullest([], [()], 0) == 0
    assert sizing.split([], [()], 0) == [()]
