"""A file of results is held to the page: a changed line, another runtime, a case that differs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults.sweep import page_check, results, summary
from tests.faults.sweep.results import CONTROL, PROOF, Line
from tools import proof_digest

PARTS = {"runtime": "abc", "template map": "def"}
_CASES = [
    f"{guarantee}-map-1:middle:ModifyRows.output:{fault}"
    for guarantee in ("transactional", "at_least_once")
    for fault in ("refused", "dropped", "lost-reply")
]
LINES = [
    Line(case, "held", 0, 0, 1.0, 31, "abc", starts=1, digest=results.digest_of(case, PARTS))
    for case in _CASES
]


def _file(folder: Path, lines: list[Line]) -> Path:
    path = folder / "results.jsonl"
    path.unlink(missing_ok=True)
    for line in lines:
        results.append(line, path)
    return path


def test_a_file_agrees_with_its_page_until_a_line_is_changed(tmp_path: Path) -> None:
    path = _file(tmp_path, LINES)
    page = summary.summary(LINES, PARTS, proof_digest.checksum(path), {})
    assert [*page_check.of_file(path, page, PARTS)] == []
    (said,) = page_check.of_file(path, page, {**PARTS, "runtime": "other"})
    assert said == "the page is of another runtime: check out the commit that it names"
    _file(tmp_path, [replace(LINES[0], lost=1), *LINES[1:]])
    checksum, *figures = page_check.of_file(path, page, PARTS)
    assert "the checksum" in checksum
    (figure,) = figures  # one row of the table, and not the whole table
    assert figure.startswith(f"table: {LINES[0].variant}: the page says [")


def test_the_lines_of_a_clone_have_no_figures_of_their_own(tmp_path: Path) -> None:
    everything, path = _file(tmp_path, LINES), tmp_path / "sample.jsonl"
    sample = summary.write_sample(PARTS, everything, path)
    page = summary.summary(LINES, PARTS, "of the asset", {}, sample)
    assert {line.case for line in results.read(path)} == {line.case for line in LINES}
    assert [*page_check.of_file(path, page, PARTS)] == []
    path = tmp_path / "results.jsonl"
    _file(tmp_path, LINES[:1])
    assert len([*page_check.of_file(path, page, PARTS)]) > 1


def test_a_case_that_was_played_again_is_named_by_the_page_and_by_its_file(tmp_path: Path) -> None:
    path = _file(tmp_path, [replace(LINES[0], verdict="stalled"), *LINES])
    again = results.replaced(results.every(path), PARTS)
    page = summary.summary(LINES, PARTS, proof_digest.checksum(path), {}, replaced=again)
    assert page.replaced == [LINES[0].case]
    assert [*page_check.of_file(path, page, PARTS)] == []


def test_the_readers_seed_draws_the_cases() -> None:
    first, second = ([line.case for line in page_check.drawn(LINES, 3, seed)] for seed in (1, 2))
    assert len({*first}) == len({*second}) == 3
    assert first != second
    assert first == [line.case for line in page_check.drawn(LINES, 3, 1)]
    assert len(page_check.drawn(LINES, 100, 1)) == len(LINES)


def test_one_of_four_cases_is_the_controls() -> None:
    control = [replace(LINES[0], case=f"listing-{n}", of=f"{CONTROL}map") for n in range(9)]
    for count, jobs, others in ((4, 3, 1), (8, 6, 2), (12, 6, 6), (100, 6, 9)):
        found = page_check.drawn([*LINES, *control], count, 1)
        assert Counter(line.of == PROOF for line in found) == {True: jobs, False: others}
    assert len(page_check.drawn(control, 4, 1)) == 4


def _listing(verdict: str, **figures: Any) -> Line:
    case = "listing-at_least_once-map-1:middle:ModifyRows.output:refused"
    return replace(LINES[0], case=case, of=f"{CONTROL}map", verdict=verdict, **figures)


def test_the_control_is_held_to_how_it_ended() -> None:
    held = _listing("held")
    other = _listing("held", repeated=7, starts=4, failures=2, rewritten=3)
    assert [*page_check.differences([held], [other])] == []
    assert [*page_check.differences([held], [replace(other, lost=1)])] != []
    assert [*page_check.differences([held], [replace(other, verdict="stalled")])] != []
    stalled = _listing("stalled", waiting=40)
    assert [*page_check.differences([stalled], [replace(stalled, waiting=52)])] == []
    (said,) = page_check.differences([stalled], [replace(stalled, waiting=0)])
    assert said == f"{stalled.case}: rows in the queue was some, and is none"
    (said,) = page_check.differences([stalled], [held])
    assert said == f"{stalled.case}: the verdict was stalled, and is held"


@pytest.mark.parametrize(
    ("rest", "is_named"),
    [
        ("CommitTransaction.output:killed-after", True),
        ("CommitTransaction.output~last:killed-before", True),
        ("CommitTransaction.ledger:killed-after", True),
        # Of two tasks, the other one may have committed its rows by then, or not.
        ("ModifyRows.output~last:killed-before", False),
        ("CommitTransaction.ledger:refused", False),
        (
            "CommitTransaction.ledger:killed-after+restart-raise:ModifyRows.ledger:killed-after",
            False,
        ),
    ],
)
def test_rows_are_written_again_where_the_steps_decide_it(rest: str, *, is_named: bool) -> None:
    line = replace(LINES[0], case=f"idempotent-map-1:middle:{rest}", rewritten=40)
    assert [*page_check.differences([line], [replace(line, rewritten=12)])] == []
    found = [*page_check.differences([line], [replace(line, rewritten=0)])]
    assert bool(found) == is_named


@pytest.mark.parametrize(
    ("fault", "first", "second", "is_named"),
    [
        ("altered", {"starts": 1}, {"starts": 2}, False),
        ("altered", {"starts": 2}, {"starts": 3}, True),
        ("paused", {"starts": 2}, {"starts": 1}, True),
        ("paused", {"failures": 0}, {"failures": 1}, False),
        ("transaction-gone", {"failures": 1}, {"failures": 2}, True),
        ("refused", {"failures": 0}, {"failures": 1}, True),
    ],
)
def test_what_a_fault_may_do_need_not_happen_again(
    fault: str, first: dict[str, Any], second: dict[str, Any], *, is_named: bool
) -> None:
    one, other = (
        replace(LINES[0], case=f"transactional-map-1:middle:ModifyRows.output:{fault}", **figures)
        for figures in (first, second)
    )
    assert bool([*page_check.differences([one], [other])]) == is_named


def test_a_case_that_missed_its_point_may_hold_and_not_the_reverse() -> None:
    missed = replace(LINES[0], verdict="missed")
    assert [*page_check.differences([missed], [LINES[0]])] == []
    assert [*page_check.differences([missed], [replace(missed, verdict="failed")])] != []
    assert [*page_check.differences([LINES[0]], [missed])] != []


def test_a_check_says_what_it_has_not_checked() -> None:
    played = [*LINES[:3], _listing("held")]
    first, *_, last = page_check.said(200, played, is_sample=False)
    assert first == (
        "Checked: the page's figures, from 200 lines. "
        "3 of its cases of the job and 1 of the control were run again."
    )
    assert last == (
        "If 10% of the lines were false, 4 cases would show at least one with a probability of 34%."
    )
    first, second, *_ = page_check.said(200, played, is_sample=True)
    assert first.startswith("Checked: the checksum of this sample, 200 lines.")
    assert second.startswith("Not checked: the page's figures.")


def test_a_check_finds_a_share_of_false_lines_with_this_probability() -> None:
    assert page_check.chance(20, 0.1) == pytest.approx(1 - 0.9**20)
    assert f"{page_check.chance(20, 0.1):.0%}" == "88%"
    assert page_check.chance(0, 0.1) == 0


def test_a_case_that_differs_is_named() -> None:
    one, other = LINES[0], LINES[3]
    assert [*page_check.differences([one], [replace(one, seconds=9.0, recovered=3.0)])] == []
    (said,) = page_check.differences(
        [one], [replace(one, verdict="failed", said="2 failures, not 0")]
    )
    assert said == f"{one.case}: the verdict was held, and is failed 2 failures, not 0"
    assert [*page_check.differences([one], [replace(one, repeated=3)])] != []
    # How many are there twice depends on the moment of a kill.
    assert [*page_check.differences([other], [replace(other, repeated=3)])] == []
    assert [*page_check.differences([other], [replace(other, failures=1)])] != []
    assert [*page_check.differences([one], [])] == [f"{one.case}: not played"]
