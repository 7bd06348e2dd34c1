"""The ranges of batches in the ledger: each row once, or what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.sweep import history, judging, oracle, ranges
from tests.faults.sweep.lab import made_of
from tests.faults.variants import Variant
from tests.support.verdict import FAILED, HELD

A, B = "//q/queue-0", "//q/queue-1"
ENDS = {A: {0: 40, 1: 20}, B: {0: 20, 1: 0}}
Rows = Mapping[str, Mapping[int, tuple[int, int]]]


def _batch(number: int, rows: Rows, read: int) -> dict[str, Any]:
    queues = [
        {"path": path, "rows": {str(p): [*pair] for p, pair in ranges.items()}}
        for path, ranges in rows.items()
    ]
    return {"number": number, "queues": queues, "rows_read": read}


FIRST = _batch(9, {A: {0: (0, 20), 1: (0, 20)}}, 40)
ROWLESS = _batch(10, {}, 0)
LAST = _batch(11, {A: {0: (20, 40)}, B: {0: (0, 20)}}, 40)


def test_batches_that_read_each_row_once_have_no_problem() -> None:
    assert [*ranges.problems([LAST, FIRST, ROWLESS], ENDS, 80)] == []
    assert [*ranges.problems([{**ROWLESS, "queues": None}], {A: {0: 0}}, 0)] == []


@pytest.mark.parametrize(
    ("batches", "sent", "said"),
    [
        ([LAST], 80, "batch 11 has a gap in //q/queue-0/0: 0, 20"),
        ([FIRST], 80, "the batches end at row 20 of //q/queue-0/0, not at 40"),
        ([FIRST, {**FIRST, "number": 10}, LAST], 80, "an overlap in //q/queue-0/0: 20"),
        ([FIRST, _batch(12, {A: {0: (19, 40)}, B: {0: (0, 20)}}, 41)], 80, "an overlap"),
        ([FIRST, {**LAST, "rows_read": 39}], 80, "batch 11 read 39 rows, and has 40"),
        ([FIRST, LAST], 81, "the batches read 80 rows of 81"),
        ([FIRST, LAST, _batch(12, {"//q/other": {0: (0, 0)}}, 0)], 80, "no queue has //q/other/0"),
        ([], 80, "the batches end at row 0 of //q/queue-0/0, not at 40"),
    ],
)  # fmt: skip
def test_what_was_lost_or_read_twice(batches: list[Any], sent: int, said: str) -> None:
    found = [*ranges.problems(batches, ENDS, sent)]
    assert any(said in problem for problem in found), found


@pytest.mark.parametrize(
    ("variant", "times", "verdict"),
    [
        (Variant("transactional", "merge"), 1, HELD),
        (Variant("transactional", "merge"), 2, FAILED),  # its table is the same
        (Variant("transactional", "merge"), 0, FAILED),
        (Variant("at_least_once", "map"), 2, FAILED),
        (Variant("transactional", "map", is_listing=True), 0, HELD),  # has no ledger
    ],
    ids=str,
)
def test_a_batch_that_the_ledger_has_twice_or_not_does_not_hold(
    variant: Variant, times: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = made_of(variant).sample.make(40)
    batch = {A: {0: (0, 20), 1: (0, 20)}}
    rows = [_batch(number, batch, 40) for number in range(times)]
    tablets = {"tablets": [{"total_row_count": 20}] * 2}
    client = SimpleNamespace(
        select_rows=lambda query: rows, get_tablet_infos=lambda path, partitions: tablets
    )
    settings = SimpleNamespace(ledger="//q/ledger", queues=(A,), output="//q/output")
    recording = SimpleNamespace(
        variant=variant,
        context=SimpleNamespace(client=client, settings=settings),
        control=SimpleNamespace(journal=list),
    )
    monkeypatch.setattr(oracle, "read", lambda *_: history.expected_of(variant, sent))
    play: Any = SimpleNamespace(recording=recording, sent=sent, before=0)
    assert judging.judged(play).verdict == verdict
