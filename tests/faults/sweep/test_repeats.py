"""Whose rows are repeated: those of the batch that was cut off, or some of each batch."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.sweep import judging, repeats
from tests.faults.sweep.cases import Case
from tests.faults.variants import Variant
from tests.support.verdict import FAILED, HELD, Verdict

ROWS = [
    {"$tablet_index": n % 2, "$row_index": n // 2, "event_id": f"e{n}", "price": 1}
    for n in range(12)
]
LEDGER = [
    {"number": n, "queues": [{"path": "//q", "rows": {"0": [n, n + 1], "1": [n, n + 1]}}]}
    for n in range(6)
]
COLUMNS = {"output": ["price", "event_id"], "sums": ["price"]}


def _repeated(*events: int) -> dict[str, Counter[str]]:
    return {"output": Counter(repr([1, f"e{n}"]) for n in events), "sums": Counter(["[3]"])}


@pytest.mark.parametrize(
    ("events", "numbers"), [((), set()), ((2, 3), {1}), ((0, 3, 11), {0, 1, 5})]
)
def test_repeated_rows_are_of_the_batches_that_have_read_them(
    events: tuple[int, ...], numbers: set[int]
) -> None:
    assert repeats.batches(_repeated(*events), COLUMNS, {"//q": ROWS}, LEDGER) == numbers


def test_an_event_that_was_published_twice_says_nothing() -> None:
    again = {"$tablet_index": 0, "$row_index": 6, "event_id": "e2", "price": 1}
    assert repeats.batches(_repeated(2), COLUMNS, {"//q": [*ROWS, again]}, LEDGER) == set()


@pytest.mark.parametrize(("numbers", "verdict"), [({1}, HELD), ({1, 2}, FAILED)])
def test_a_fault_explains_the_rows_of_one_batch(
    monkeypatch: pytest.MonkeyPatch, numbers: set[int], verdict: str
) -> None:
    variant = Variant("at_least_once", "map")
    monkeypatch.setattr(judging, "_repeated_batches", lambda play, result: numbers)
    play: Any = SimpleNamespace(
        case=Case(variant, "middle:ModifyRows.output", "refused"),
        recording=SimpleNamespace(variant=variant),
        drivers=[SimpleNamespace(error=None, failures=0)],
        may_cut_batch=True,
    )
    result = judging.explained(judging.Result(HELD, Verdict(repeated=3)), play)
    assert result.verdict == verdict
    assert result.said == ("" if verdict == HELD else "2 batches with repeated rows, not 1")
