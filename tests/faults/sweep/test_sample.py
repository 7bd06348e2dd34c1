"""A fixed sample of the proof, in one lane; `make proof` plays all cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.sweep import cases, lane
from tests.faults.sweep.play import MISSED, play
from tests.faults.sweep.points import Point
from tests.faults.sweep.scene import Scene, recorded
from tests.faults.sweep.variants import variant_of

pytestmark = [pytest.mark.slow, pytest.mark.spark]

VARIANT = variant_of("transactional-map-1")
SAMPLE = (
    "middle:CommitTransaction.ledger:killed-before",
    "middle:CommitTransaction.ledger:killed-after",
    "middle:ModifyRows.output:overtaken",
    "middle:ModifyRows.output~last:refused",
    "middle:CommitTransaction.ledger:lost-reply",
    "middle:CommitTransaction.ledger:late-begun",
    "start-begin:CommitTransaction.ledger:paused",
    "middle:CommitTransaction.ledger:killed-before+restart-begin:CommitTransaction.ledger:"
    "killed-after",
)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """Record the variant in a lane of its own."""
    with lane.opened() as opened:
        yield recorded(VARIANT, opened)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_case_holds(scene: Scene, name: str) -> None:
    (case,) = (case for case in cases.all_cases() if case.name == f"{VARIANT.name}:{name}")
    result = play(case, scene)
    counted = (result.verdict, result.tables.lost, result.tables.repeated)
    assert counted == ("held", 0, 0), result.said


def test_a_fault_that_does_not_happen_is_missed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = "middle:ModifyRows.output"
    assert scene.find(point) is not None
    none: Point | None = None
    monkeypatch.setattr(scene, "find", lambda name: none)
    assert play(cases.Case(VARIANT, point, cases.REFUSED), scene).verdict == MISSED


def test_every_point_of_the_list_is_recorded(scene: Scene) -> None:
    known = {str(point["name"]) for point in cases.load_points()[VARIANT.name]}
    writes = {point.name for point in scene.points if point.is_write}
    assert writes <= known
