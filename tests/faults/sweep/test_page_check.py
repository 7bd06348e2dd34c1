"""A file of results is held to the page: a changed line, another runtime, a case that differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.faults.sweep import page_check, results, summary
from tests.faults.sweep.results import Line
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
    assert [one.partition(":")[0] for one in figures] == ["table"]


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
