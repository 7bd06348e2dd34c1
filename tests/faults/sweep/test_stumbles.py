"""A cluster that stumbles: which cases there are, which are played, and what a job has to do."""

from __future__ import annotations

import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from minicluster.client import Fault
from tests.faults.sweep import cases, injection
from tests.faults.sweep.__main__ import main
from tests.faults.sweep.cases import STUMBLES, Case, all_cases, of_proof
from tests.faults.sweep.driver import EndedError
from tests.faults.sweep.jobs import STUMBLING
from tests.faults.sweep.playing import Play
from tests.faults.variants import Variant
from tests.support.examples import STATEFUL
from tests.support.server_errors import FULL
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode

WINDOW = Variant("transactional", "window")
EVERY = [case for case in all_cases() if case.variant in STUMBLING and case.fault in STUMBLES]


@pytest.mark.parametrize("processing", STATEFUL)
def test_each_class_of_request_meets_each_fault_and_each_pair_is_played(processing: str) -> None:
    every = [case for case in EVERY if case.variant.processing == processing]
    played = [case for case in cases._covered() if case.variant.processing == processing]
    classes = [(*case.class_, case.fault) for case in played]
    assert len(classes) == len({*classes})
    assert {*classes} == {(*case.class_, case.fault) for case in every}
    assert {stage for stage, *_ in classes} == {"start", "restart", "batch"}
    assert {pair for case in played for pair in case.pairs} == {
        pair for case in every for pair in case.pairs
    }
    assert len(played) < len(every) / 10


def test_an_hours_subset_has_each_class_with_each_fault_each_type_and_each_variant() -> None:
    found = cases.sampled_stumbles()
    assert {*found} <= cases._covered()
    classes = [(*case.class_, case.fault) for case in found]
    assert len(classes) == len({*classes})
    assert {*classes} == {(*case.class_, case.fault) for case in EVERY}
    assert {(case.variant.processing, case.class_) for case in found} == {
        (case.variant.processing, case.class_) for case in EVERY
    }
    of_variant = Counter(case.variant for case in found)
    assert {*of_variant} == {*STUMBLING}
    assert max(of_variant.values()) - min(of_variant.values()) < len(found) / 100


def test_a_job_with_state_meets_all_that_can_happen_to_a_request() -> None:
    met = {(case.point, case.fault) for case in EVERY if case.variant == WINDOW}
    write = "middle:WriteFile.checkpoint/N/state/N/N/tmp"
    read = "again:ReadFile.checkpoint/N/state/N/N/N.changelog"
    assert {fault for point, fault in met if point == write} == {*STUMBLES}
    without = {cases.LOST_REPLY, cases.FULL_LONG}
    assert {fault for point, fault in met if point == read} == {*STUMBLES} - without
    full = {point.partition(":")[2].partition(".")[0] for point, fault in met
            if fault == cases.FULL_LONG}  # fmt: skip
    assert full <= {*FULL}
    # The first, the middle and the last of several.
    assert {(f"{read}{which}", cases.REFUSED) for which in ("", "~middle", "~last")} <= met


def test_no_request_of_another_variant_is_a_point() -> None:
    """The recording has some: a lab plays several variants in one JVM."""
    assert [case.name for case in EVERY if "/proof/" in case.point] == []


def test_a_case_that_the_proof_leaves_out_is_played_by_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    left_out = sorted({case.name for case in EVERY} - {case.name for case in of_proof()})
    assert main(["--list", "--only", left_out[0]]) == 0
    assert capsys.readouterr().out.splitlines()[0] == left_out[0]


def _driver(error: BaseException | None = None, outages: int = 0) -> Any:
    return SimpleNamespace(is_over=error is not None, error=error, outages=outages)


def _play(driver: Any) -> Any:
    moved: list[float] = []
    control = SimpleNamespace(clock=SimpleNamespace(advance=moved.append))
    cluster = SimpleNamespace(http="http", rpc=["one", "two"])
    recording: Any = SimpleNamespace(control=control, lab=SimpleNamespace(cluster=cluster))
    recording.driver = lambda context: SimpleNamespace(start=lambda: None)
    play = Play(recording, Case(WINDOW, "middle:ModifyRows.output", cases.TOKEN))
    play.drivers.append(driver)
    return play, moved


RULE: Any = SimpleNamespace(spec=Fault)


def test_a_job_whose_token_has_expired_has_to_end_with_these_words() -> None:
    play, _ = _play(_driver(JobError("the cluster refuses the token", code=ErrorCode.TOKEN)))
    play.start_after(cases.MUST_END[cases.TOKEN][0])
    assert len(play.drivers) == 2  # a person has renewed it


@pytest.mark.parametrize("error", [JobError("damaged", code=ErrorCode.STATE_DAMAGED), None])
def test_another_end_does_not_hold_nor_a_job_that_goes_on(error: BaseException | None) -> None:
    play, _ = _play(_driver(error))
    with pytest.raises(EndedError):
        play.start_after(cases.MUST_END[cases.TOKEN][0])
    assert len(play.drivers) == 1


def test_a_token_that_has_expired_is_refused_by_both_protocols() -> None:
    play, _ = _play(_driver())
    by_http, *by_rpc = injection._lasting(play, cases.TOKEN)
    assert (by_http["proxy"], [rule["proxy"] for rule in by_rpc]) == ("http", ["one", "two"])
    assert "discover_proxies" not in by_http["method"]
    assert "get" in by_http["method"]


@pytest.mark.parametrize("driver", [_driver(outages=9), _driver(JobError("ended"))])
def test_a_long_absence_is_over_when_the_driver_waits_or_has_ended(
    monkeypatch: pytest.MonkeyPatch, driver: Any
) -> None:
    monkeypatch.setattr(injection, "_ROUNDS", 0)
    begun = time.monotonic()
    play, moved = _play(driver)
    injection._absent(play, RULE)
    assert sum(moved) == pytest.approx(600, abs=time.monotonic() - begun + 1)
