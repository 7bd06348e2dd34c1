"""Kills of jobs with an archive; `make journeys` has one at every request."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.sweep.archives import VARIANTS, recorded
from tests.faults.sweep.lab import Lab
from tests.faults.variants import Variant

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.thorough]


@pytest.mark.parametrize(
    ("variant", "every"),
    [
        pytest.param(VARIANTS[0], 30, id="sample"),
        *(pytest.param(v, 1, id=v.name, marks=pytest.mark.journey) for v in VARIANTS),
    ],
)
def test_each_row_is_in_one_table_or_rejected_wherever_a_driver_is_killed(
    opened: Lab, variant: Variant, every: int, tmp_path: Path
) -> None:
    with recorded(variant, opened, tmp_path) as run:
        assert run.play(every) == []
