"""Generated projects at work: their own tests, on the real SPYT of each Spark version."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.project import VARIANTS, Variant, generate, variant_answers


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_its_own_tests_pass(
    tmp_path: Path, environments: dict[str, Path], variant: Variant
) -> None:
    answers = variant_answers(variant)
    project = generate(tmp_path, **answers)
    done = subprocess.run(
        [environments[answers["spark_version"]] / "bin/python", "-m", "pytest", "-q"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
