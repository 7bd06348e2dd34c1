"""The protocol holds in every interleaving; without any one of its parts it does not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest

from tests.faults.model.__main__ import told
from tests.faults.model.options import (
    CASES,
    FAULTS,
    GUARANTEES,
    MUTANTS,
    STEPS,
    Model,
)
from tests.faults.model.search import search

LONG = {"no_check", "number_alone", "start_unchecked"}
"""Mutants whose search takes seconds."""
SAMPLE = ("transactional", "stateful")
"""The one whose whole bounds are searched in `make test`; the others' are in `make journeys`."""


@pytest.mark.parametrize("connector", ["own", pytest.param("spyt", marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("guarantee", "job"), CASES)
def test_no_fault_breaks_the_protocol(guarantee: str, job: str, connector: str) -> None:
    result = search(Model(guarantee, job, connector, starts=2, faults=1))
    assert not result.wrong, told(result)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("guarantee", "job"),
    [
        pytest.param(*case, marks=pytest.mark.slow if case == SAMPLE else pytest.mark.journey)
        for case in CASES
    ],
)
def test_no_two_faults_in_three_starts_break_it(guarantee: str, job: str) -> None:
    result = search(Model(guarantee, job))
    assert not result.wrong, told(result)


def test_head_and_consumer_part_only_where_spyt_skips_its_advance() -> None:
    kinds = tuple(kind for kind in FAULTS if kind != "skip")
    result = search(Model(kinds=kinds, starts=2, faults=1))
    assert not result.wrong, told(result)


def _marked(names: Iterable[str]) -> list[object]:
    """Return the names as parameters, with what takes seconds left out of `make test-quick`."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in names]


@pytest.mark.parametrize("name", _marked(MUTANTS))
def test_every_part_is_needed(name: str) -> None:
    result = search(MUTANTS[name].model(name, Model()))
    print(told(result))
    assert result.wrong
    assert result.trace


@pytest.mark.parametrize("name", _marked(name for name in MUTANTS if MUTANTS[name].faults))
def test_a_mutant_has_the_fewest_faults_that_show_it(name: str) -> None:
    mutant = MUTANTS[name]._replace(faults=MUTANTS[name].faults - 1)
    result = search(mutant.model(name, Model(starts=2)))
    assert not result.wrong, told(result)


def test_the_table_names_the_steps_that_are_taken() -> None:
    jobs = product(GUARANTEES, ("stateful", "static"))
    results = [search(Model(*case, starts=1, faults=1)) for case in jobs]
    assert set.union(*(set(result.names) for result in results)) == set(STEPS)
