"""The matrix: its names, and four of its cases; `make crash-matrix` plays all of them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.faults.two_drivers import __main__ as matrix
from tests.faults.two_drivers import side_by_side
from tests.faults.two_drivers.__main__ import main
from tests.faults.two_drivers.cases import (
    CASES,
    MOMENTS,
    START_VARIANTS,
    STATIC_VARIANTS,
    UPLOAD_VARIANTS,
    UPLOADS,
    VARIANTS,
    chosen,
)
from tests.faults.two_drivers.job_site import project_of, site_of
from tests.faults.two_drivers.play import Result, play
from tests.support.jvm import submit_args
from tests.support.verdict import ENDED, EXACT, HELD

SAMPLE = ("transactional-window-1-paused-head", "transactional-window-1-start-killed-folder")
"""One of a batch, and in `make journeys` one of a start and two of uploads. Of commits that are
applied late and of kills next to a static output, packages/ytstream/tests has samples without a
second process: test_older_drivers.py and test_static_outputs.py."""
UPLOAD_SAMPLE = (
    "transactional-aggregate-1-upload-killed-changes-of-one-partition",
    "transactional-aggregate-1-upload-killed-snapshot-files",
)


def test_every_variant_meets_every_place_under_a_name_of_its_own() -> None:
    count = 10 * len(VARIANTS) + 13 * len(START_VARIANTS) + 4 * len(STATIC_VARIANTS)
    count += len(UPLOADS) * len(UPLOAD_VARIANTS)
    # No request shows that a checkpoint on the driver's disk has ``commits/N``.
    count -= sum(v.guarantee != "transactional" and not v.is_stateful for v in VARIANTS)
    assert len(MOMENTS) == 4
    assert len({case.name for case in CASES}) == len(CASES) == count


def test_a_part_of_the_name_chooses() -> None:
    assert [case.name for case in chosen(SAMPLE[0])] == [SAMPLE[0]]
    assert {case.kind for case in chosen("-late-")} == {"late"}
    assert {case.kind for case in chosen("-static-")} == {"killed"}
    assert {case.kind for case in chosen("-upload-")} == {"upload-killed"}
    assert chosen("") == [*CASES]


def test_processes_side_by_side_play_each_case_once() -> None:
    names = matrix._names(CASES)
    parts = side_by_side.shared(names, 4)
    assert sorted(name for part in parts for name in part) == sorted(case.name for case in CASES)
    assert all(sum({*own} <= {*part} for part in parts) == 1 for own in names.values())
    assert max(map(len, parts)) - min(map(len, parts)) < max(map(len, names.values()))
    assert side_by_side.shared({"one": ["a", "b"]}, 4) == [["a", "b"]]


def test_a_case_whose_process_has_ended_has_not_held() -> None:
    rows = [*side_by_side.played("json.tool", [["a", "b"], ["c"]])]  # knows no --only
    assert sorted(row[0] for row in rows) == ["a", "b", "c"]
    assert {row[-1] for row in rows} == {"not played: exit code 2"}


def test_rows_are_found_among_what_a_process_says(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """print("Made it.\\n  make demo"); print('["a", "1", "0", "0", "ended", "held"]')"""
    monkeypatch.setattr(
        side_by_side,
        "_process",
        lambda module, part: subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
        ),
    )
    rows = [*side_by_side.played("", [["a"]])]
    assert rows == [("a", "1", "0", "0", "ended", "held")]


def test_a_name_that_no_case_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--only", "exactly-twice"])
    assert caught.value.code == 2
    assert "no case has 'exactly-twice' in its name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("exit_code", "wanted"), [(None, HELD), (1, f"{ENDED}: a driver ended with 1:\nstate_damaged")]
)
def test_a_driver_that_has_ended_does_not_hold_whatever_the_tables_say(
    monkeypatch: pytest.MonkeyPatch, exit_code: int | None, wanted: str
) -> None:
    driver = SimpleNamespace(exit_code=exit_code, tail=lambda: "state_damaged")
    site = nullcontext(SimpleNamespace(driver=driver))
    monkeypatch.setattr(matrix, "project_of", lambda variant, folder: folder)
    monkeypatch.setattr(matrix, "site_of", lambda variant, project, logs: site)
    case = CASES[0]
    (row,) = matrix._rows_of(case.variant, [case], lambda case, site: Result(EXACT, "goes on"))
    assert row[-1] == wanted


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    [
        SAMPLE[0],
        *(pytest.param(name, marks=pytest.mark.journey) for name in (SAMPLE[1], *UPLOAD_SAMPLE)),
    ],
)
def test_two_drivers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    (case,) = chosen(name)
    with site_of(case.variant, project_of(case.variant, tmp_path), tmp_path) as site:
        result = play(case, site)
    assert result.tables == EXACT
