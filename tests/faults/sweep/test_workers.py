"""Which case a worker gets next, and what is left to another run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from local_extensions.versions import SPARK
from tests.faults.sweep import __main__ as command
from tests.faults.sweep import cases, results, workers
from tests.faults.sweep.cases import KILLED_AFTER, Case
from tests.faults.variants import Variant
from tests.support.project import environment_of
from tests.support.verdict import HELD

MAP, JOIN = Variant("transactional", "map"), Variant("transactional", "join")
WINDOW = Variant("transactional", "window")
COUNTS = {WINDOW: 9, MAP: 2, JOIN: 3}


def _board() -> workers.Board:
    return workers.board_of(
        Case(variant, f"middle:ModifyRows.{n}", KILLED_AFTER)
        for variant, count in COUNTS.items()
        for n in range(count)
    )


def _variant(board: workers.Board, worker: int) -> Variant | None:
    case = board.take(worker)
    return None if case is None else case.variant


def test_a_worker_stays_with_its_variant_and_takes_those_without_state_first() -> None:
    board = _board()
    found = [_variant(board, 0) for _ in range(15)]
    assert found == [*[MAP] * 2, *[JOIN] * 3, *[WINDOW] * 9, None]


def test_workers_are_at_different_variants_as_long_as_there_are_several() -> None:
    board = _board()
    assert [_variant(board, one) for one in range(3)] == [MAP, JOIN, WINDOW]
    assert [_variant(board, one) for one in range(3)] == [MAP, JOIN, WINDOW]
    assert _variant(board, 0) == JOIN


def test_a_variant_that_cannot_be_recorded_is_left_to_another_run() -> None:
    board = _board()
    assert _variant(board, 0) == MAP
    for _ in range(workers.MOST_FAILURES):
        board.failed(MAP.name, "no recording")
    assert board.problems == ["1 cases not played: no recording"]
    assert _variant(board, 0) == JOIN


def test_what_has_not_begun_is_left_when_the_time_is_over() -> None:
    board = _board()
    board.clear()
    assert _variant(board, 0) is None


@pytest.mark.parametrize(("slower", "count"), [(1.0, 1), (2.0, 0)])
def test_what_was_played_with_other_limits_is_no_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, slower: float, count: int
) -> None:
    case, path = Case(MAP, "middle:ModifyRows.output", KILLED_AFTER), tmp_path / "results.jsonl"
    line = results.Line(case.name, HELD, 0, 0, 1.0, 31, "abc")

    def run(board: Any, count: int, folder: Path, heard: Any, *words: str, spark: str) -> None:
        heard(line)

    monkeypatch.setattr(command, "SLOWER", slower)
    monkeypatch.setattr(cases, "of_proof", lambda: [case])
    monkeypatch.setattr(workers, "run", run)
    (played,) = command._played([case], {}, 1, path, False, 0)
    assert played.verdict == HELD
    assert len(results.read(path)) == count


def test_a_worker_of_another_spark_has_its_packages_first() -> None:
    python, _, code = workers.command_of("3.5")
    assert python == str(environment_of("3.5") / "bin" / "python")
    assert "sys.path += " in code  # behind those of its own environment
    assert workers.command_of(SPARK) == [sys.executable, "-m", "tests.faults.sweep.worker"]
