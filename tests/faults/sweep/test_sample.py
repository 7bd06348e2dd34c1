"""A fixed sample of the proof, in one lab; `make proof` plays all cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.sweep import cases, lab, playing
from tests.faults.sweep.jobs import variant_of
from tests.faults.sweep.play import play
from tests.faults.sweep.points import Point
from tests.faults.sweep.recording import Recording, recorded
from tests.support import without_fix
from tests.support.verdict import HELD, MISSED, NOT_HELD
from ytstream.connector.java import jvm_of
from ytstream.connector.tablet_transactions import Tablets

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.each_case, pytest.mark.thorough]

VARIANT = variant_of("transactional-map-1")
SAMPLE = (
    "middle:CommitTransaction.ledger:killed-before",
    "middle:CommitTransaction.ledger:lost-reply",
    "middle:CommitTransaction.ledger:killed-after",
    "middle:ModifyRows.output~last:refused",
    "middle:ModifyRows.output:overtaken",
    "middle:CommitTransaction.ledger:late-begun",
    "start-begin:CommitTransaction.ledger:paused",
    "middle:CommitTransaction.ledger:killed-before+restart-begin:CommitTransaction.ledger:"
    "killed-after",
)


RecordingOf = Callable[[str], Recording]


@pytest.fixture(scope="module")
def recording_of() -> Iterator[RecordingOf]:
    """Record variants in a lab of their own, each one once."""
    recordings: dict[str, Recording] = {}
    with lab.opened() as opened:

        def found(name: str) -> Recording:
            recordings[name] = recordings.get(name) or recorded(variant_of(name), opened)
            opened.adopt(recordings[name].context)
            return recordings[name]

        yield found


@pytest.fixture
def recording(recording_of: RecordingOf) -> Recording:
    """Return the recorded variant of the sample."""
    return recording_of(VARIANT.name)


def _case(name: str) -> cases.Case:
    (case,) = (case for case in cases.all_cases() if case.name == name)
    return case


@pytest.mark.parametrize("name", SAMPLE)
def test_a_case_holds(recording: Recording, name: str) -> None:
    result = play(_case(f"{VARIANT.name}:{name}"), recording)
    counted = (result.verdict, result.tables.lost, result.tables.repeated)
    assert counted == ("held", 0, 0), result.said


def _head_apart(patch: pytest.MonkeyPatch, recording: Recording) -> None:
    tablets = Tablets(jvm_of(recording.lab.spark), recording.context.settings)
    stream: Any = SimpleNamespace(tablets=tablets)
    without_fix.write_the_head_apart(patch, stream)


WITHOUT: Mapping[str, Callable[[pytest.MonkeyPatch, Recording], None]] = {
    "transactional-map-1:middle:AdvanceConsumer.consumer:refused": _head_apart,
    "transactional-map-1:middle:CommitTransaction.ledger:late-in-start": (
        lambda patch, _: without_fix.raise_no_epoch_before_the_start(patch)
    ),
    "transactional-map-1:start-begin:StartTransaction.tablet:paused": (
        lambda patch, _: without_fix.begin_in_any_epoch(patch)
    ),
    "transactional-window-1:middle:CommitTransaction.ledger:killed-before": (
        lambda patch, _: without_fix.repair_no_folder(patch)
    ),
}
"""A case of the sweep, and what takes out the fix without which it breaks."""
PATIENCE = 60.0
"""A case that breaks often stalls."""


@pytest.mark.journey
@pytest.mark.parametrize("name", WITHOUT)
def test_a_case_breaks_without_a_fix(
    recording_of: RecordingOf, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = _case(name)
    recording = recording_of(case.variant.name)
    monkeypatch.setattr(playing, "PATIENCE", PATIENCE)
    assert play(case, recording).verdict == HELD
    WITHOUT[name](monkeypatch, recording)
    assert play(case, recording).verdict in NOT_HELD


OF_MUTANTS = (
    "transactional-deduplicate-1:middle:CommitTransaction.ledger:killed-before",
    "transactional-merge-1:middle:CommitTransaction.ledger:killed-before",
    "at_least_once-map-1:middle:StartTransaction.tablet:killed-before",
    "transactional-map-1:middle:CommitTransaction.ledger:killed-before",
    "idempotent-map-1:middle:CommitTransaction.ledger:killed-before",
)
"""Cases that mutants/table.py names: each of them is red with a patch of the runtime or of the job.
"""


@pytest.mark.journey
@pytest.mark.parametrize("name", OF_MUTANTS)
def test_a_case_of_a_mutant_is_held(recording_of: RecordingOf, name: str) -> None:
    case = _case(name)
    result = play(case, recording_of(case.variant.name))
    assert result.verdict == HELD, result.said


KILLS = (
    "transactional-map-1:start-begin:CommitTransaction.ledger:killed-after",
    "transactional-map-1:middle:ModifyRows.output~last:killed-before",
    "transactional-window-1:middle:CommitTransaction.ledger:killed-before",
    "transactional-window-1:middle:CommitTransaction.ledger:killed-after",
)
"""Kills of a start and of a batch, with state and without."""


@pytest.mark.journey
@pytest.mark.parametrize("name", KILLS)
def test_a_process_that_is_killed_leaves_what_was_recorded(
    recording_of: RecordingOf, name: str
) -> None:
    case = _case(name)
    recording = recording_of(case.variant.name)
    results = [play(one, recording) for one in (case, replace(case, driver=cases.PROCESS))]
    told = [(one.verdict, one.tables.lost, one.tables.repeated, one.said) for one in results]
    assert told == [(HELD, 0, 0, "")] * 2


STUMBLES = (
    "transactional-window-1:middle:WriteFile.checkpoint/N/state/N/N/tmp:refused",
    "transactional-window-1:middle:WriteFile.checkpoint/N/state/N/N/tmp~last:dropped",
    "transactional-window-1:middle:WriteFile.checkpoint/N/state/N/N/tmp:cluster-away",
    "transactional-window-1:middle:WriteFile.checkpoint/N/state/N/N/tmp:disk-full-60-s",
    "transactional-window-1:middle:WriteFile.checkpoint/N/state/N/N/tmp:cluster-away-600-s",
    "transactional-window-1:again:ReadFile.checkpoint/N/state/N/N/N.changelog:refused",
    "transactional-window-1:middle:CommitTransaction.ledger:disk-full-60-s",
    "transactional-aggregate-1:middle:WriteFile.checkpoint/N/state/N/N/tmp:dropped",
)
"""What once ended the job with the advice to drop its state."""


@pytest.mark.journey
@pytest.mark.parametrize("name", STUMBLES)
def test_a_stumbling_cluster_is_waited_for_and_no_failure_is_counted(
    recording_of: RecordingOf, name: str
) -> None:
    case = _case(name)
    result = play(case, recording_of(case.variant.name))
    counted = (result.verdict, result.tables.lost, result.tables.repeated, result.failures)
    assert counted == (HELD, 0, 0, 0), result.said


def test_a_fault_that_does_not_happen_is_missed(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = "middle:ModifyRows.output"
    assert recording.find(point) is not None
    none: Point | None = None
    monkeypatch.setattr(recording, "find", lambda name: none)
    assert play(cases.Case(VARIANT, point, cases.REFUSED), recording).verdict == MISSED


def test_every_point_of_the_list_is_recorded(recording: Recording) -> None:
    known = {str(point["name"]) for point in cases.load_points()[VARIANT.name]}
    # A query that is slow to open has triggers without rows, and what has a clock of its own ticks.
    by_clock = ("~middle", "/@ytstream_complete_until")
    writes = {
        point.name
        for point in recording.points
        if point.is_write and not (point.place.endswith("open") and point.name.endswith(by_clock))
    }
    assert writes <= known
