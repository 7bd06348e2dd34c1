"""Bounds of the sums in a table: which of them are looked at, and which batch may not be committed.

No Spark: a batch adds what the tasks of the connector would tell of it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
import yt.type_info as ti

from tests.support.helpers import refusal
from ytstream import JobError, RestartableError
from ytstream.outputs import sum_bounds
from ytstream.outputs.sum_bounds import AddedSum, KeyTotal
from ytstream.schema.sums import ENDS, Bounds, Known, quarter_of

T = TypeVar("T")
FEW = 2**50
"""Tasks name the keys to which they add more: Sums.java."""


@dataclass
class Table:
    """A table with one sum, and the job that adds to it."""

    ends: Bounds
    known: Known = field(default_factory=lambda: {"total": Bounds()})
    rows: dict[int, int] = field(default_factory=dict)
    scans: int = 0
    looks: int = 0
    again: int = 0
    is_slow: bool = False

    def add(self, batch: dict[int, int]) -> None:
        """Commit a batch, unless a total would leave its type. One that is near runs again."""
        try:
            self._add(batch, is_first=False)
        except RestartableError:
            self.again += 1
            self._add(batch, is_first=True)

    def _add(self, batch: dict[int, int], *, is_first: bool) -> None:
        few = 0 if is_first or sum_bounds.is_exact(self.known, self.of(self.ends)) else FEW
        named = {key: value for key, value in batch.items() if abs(value) > few}
        rest = [0, *(value for key, value in batch.items() if key not in named)]
        adding = [0, *named.values()]
        one = AddedSum(Bounds(min(rest), max(rest)), Bounds(min(adding), max(adding)))

        def look_up() -> dict[str, KeyTotal]:
            self.looks += 1
            totals = [0, *(self.rows.get(key, 0) + value for key, value in named.items())]
            return {"total": KeyTotal(Bounds(min(totals), max(totals)))}

        self.known = sum_bounds.after(
            self.known, self.of(one), self.of(self.ends), self.scan, look_up
        )
        for key, value in batch.items():
            self.rows[key] = self.rows.get(key, 0) + value

    def scan(self) -> Known | None:
        self.scans += 1
        if self.is_slow:
            return None
        return self.of(Bounds(min([0, *self.rows.values()]), max([0, *self.rows.values()])))

    @staticmethod
    def of(value: T) -> dict[str, T]:
        return {"total": value}


SIGNED, UNSIGNED = ENDS[ti.Int64], ENDS[ti.Uint64]


def test_small_sums_are_never_looked_at() -> None:
    table = Table(SIGNED)
    for number in range(1_000):
        table.add({number % 7: 10**9, 8: -5})
    assert (table.scans, table.looks) == (0, 0)
    assert table.known["total"].most == 1_000 * 10**9


def test_bounds_that_pass_half_ask_the_table_once() -> None:
    """Here each key gets little, and the bounds grow by the largest contribution of each batch."""
    table = Table(SIGNED)
    for number in range(5_000):
        table.add({number: FEW})
    assert (table.scans, table.looks) == (5_000 * FEW // 2**62, 0)
    assert table.known["total"].most >= max(table.rows.values())


@pytest.mark.parametrize("ends", [SIGNED, UNSIGNED])
def test_a_total_reaches_the_end_of_its_type_and_not_further(ends: Bounds) -> None:
    table = Table(ends)
    table.add({1: ends.most - 10, 2: 5})
    table.add({1: 10, 2: 2**40})
    assert table.rows[1] == ends.most
    text = refusal(lambda: table.add({1: 1}))
    assert "column total is beyond 64 bits" in text
    assert str(ends.most + 1) in text
    table.add({2: 3})
    assert table.scans <= 1


def test_a_batch_near_the_end_runs_again_with_each_key_named() -> None:
    """As far as the tasks have told, key 1 may have got what is key 2's."""
    table = Table(SIGNED)
    table.add({1: SIGNED.most, 2: FEW})
    assert (table.again, table.rows) == (1, {1: SIGNED.most, 2: FEW})


def test_a_total_reaches_the_least_number_and_not_less() -> None:
    table = Table(SIGNED)
    table.add({1: -(2**62), 3: 7})
    table.add({1: -(2**62)})
    assert table.rows[1] == SIGNED.least
    assert f"int64 ends at {SIGNED.least}" in refusal(lambda: table.add({1: -1}))


def test_a_table_that_does_not_answer_is_looked_at_by_key() -> None:
    table = Table(SIGNED, is_slow=True)
    table.known = {"total": quarter_of(SIGNED)}
    for number in range(3):
        table.add({number: 2**62, 9: 1})
    assert (table.scans, table.looks) == (1, 3)
    assert table.known["total"].share(SIGNED) < 0.6
    table.add({0: 2**62 - 1})
    assert table.known["total"].most == 2**63 - 1
    refusal(lambda: table.add({0: 1}))


@pytest.mark.parametrize("seed", range(20))
def test_a_random_history_ends_where_a_total_leaves_its_type(seed: int) -> None:
    """And nowhere else: the oracle adds without an end."""
    chance, ends = random.Random(seed), random.Random(seed).choice((SIGNED, UNSIGNED))
    table, refused = Table(ends), 0
    for _ in range(300):
        power = chance.choice((3, 49, 51, 58, 62))
        batch = {
            chance.randrange(5): chance.randint(0 if ends is UNSIGNED else -(2**power), 2**power)
            for _ in range(3)
        }
        after = {key: table.rows.get(key, 0) + value for key, value in batch.items()}
        fits = all(ends.least <= total <= ends.most for total in after.values())
        try:
            table.add(batch)
        except JobError:
            assert not fits
            refused += 1
        else:
            assert fits
        values = table.rows.values()
        assert table.known["total"].least <= min(values) <= max(values) <= table.known["total"].most
    assert table.scans <= 20
    assert refused
