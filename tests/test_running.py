"""Generated projects at work: their own tests, on the real SPYT of each Spark version."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.project import VARIANTS, Variant, generate, variant_answers

#: One of each guarantee and kind is also killed and restarted, with one queue and several in turn.
KILLED = [
    variant
    for number, pair in enumerate(dict.fromkeys(variant[:2] for variant in VARIANTS))
    for variant in VARIANTS
    if variant == (*pair, ("single", "multi")[number % 2])
]


def test_every_guarantee_and_kind_is_killed_with_one_queue_or_several() -> None:
    assert len(VARIANTS) == 18
    assert len(KILLED) == 9
    assert {variant[2] for variant in KILLED} == {"single", "multi"}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_its_own_tests_pass(
    tmp_path: Path, environments: dict[str, Path], variant: Variant
) -> None:
    answers = variant_answers(variant)
    project = generate(tmp_path, **answers)
    python = environments[answers["spark_version"]] / "bin/python"
    left_out = [] if variant in KILLED else ["--ignore", "tests/test_crash.py"]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", *left_out],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
