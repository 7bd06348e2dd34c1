"""Kills and faults of jobs that look up keys; `make journeys` has one at every request."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.sweep.lab import Lab
from tests.faults.sweep.lookups import FORMS, Form, recorded

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.thorough]


@pytest.mark.parametrize(
    ("form", "every"),
    [
        pytest.param(FORMS[0], 30, id="sample"),
        *(pytest.param(form, 1, id=form.name, marks=pytest.mark.journey) for form in FORMS),
    ],
)
def test_all_rows_of_a_batch_are_as_of_the_moment_that_its_ledger_row_names(
    opened: Lab, form: Form, every: int, tmp_path: Path
) -> None:
    with recorded(form, opened, tmp_path) as run:
        assert run.play(every) == []
