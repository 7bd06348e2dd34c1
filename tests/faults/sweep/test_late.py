"""Late rows under kills and faults; `make journeys` has 13 cases of each job, and sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.faults.sweep.lab import Lab
from tests.faults.sweep.late import PLAYS, Case, LateRun, Play, play_sequence, site

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.thorough]
_SPREAD = partial(LateRun.spread, count=13)
_SEQUENCES = 40
Choose = Callable[[LateRun], Sequence[Case]]


@pytest.mark.parametrize(
    ("play", "choose"),
    [
        pytest.param(PLAYS[2], partial(LateRun.commit, count=6), id="sample"),
        *(pytest.param(play, _SPREAD, id=play.name, marks=pytest.mark.journey) for play in PLAYS),
    ],
)
def test_each_row_is_used_rejected_or_late_wherever_a_driver_is_killed(
    opened: Lab, play: Play, choose: Choose, tmp_path: Path
) -> None:
    with site(play, opened, tmp_path) as here:
        run = LateRun(here)
        run.record()
        assert run.play(choose(run)) == []
        total = run.total
        assert all((total.used, total.rejected, total.lost, total.late_batches))
        assert (total.partly > 0) == (play.job == "sliding")


@pytest.mark.parametrize("seed", range(1, _SEQUENCES + 1))
@pytest.mark.journey
def test_each_row_is_used_rejected_or_late_whatever_happens(
    opened: Lab, seed: int, tmp_path: Path
) -> None:
    with site(PLAYS[seed % len(PLAYS)], opened, tmp_path) as here:
        assert play_sequence(here, seed).problems == []
