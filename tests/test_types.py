"""Every type that round-trips, lists, structs and dicts included, in each kind of processing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Generate
from tests.project import OPTIONS

WORKER = Path(__file__).parent / "round_trip" / "worker.py"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("processing", "spark"),
    list(zip(OPTIONS["processing"], ["4.1", "3.5", "3.5", "4.1"], strict=True)),
)
def test_every_type_comes_out_as_it_went_in(
    generate: Generate, environments: dict[str, Path], processing: str, spark: str
) -> None:
    project = generate(guarantee="transactional", processing=processing, spark_version=spark)
    done = subprocess.run(
        [environments[spark] / "bin/python", WORKER, processing],
        cwd=project,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr[-10_000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"rows": 4, "wrong": {}}
