"""Tasks that Spark starts again inside a transaction: with the job's cures, and without them.

A failed attempt has sent part of its rows into the batch's transaction already. ``local[2,4]``
retries as a cluster does, ``local-cluster`` runs executors as processes of a standalone cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Generate

WORKER = Path(__file__).with_name("retries_worker.py")

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def _master(python: Path, fault: str) -> str:
    if fault == "write":
        return "local[2,4]"
    jars = next((python.parents[1] / "lib").glob("python3.*/site-packages/spyt/jars/common"))
    (agent,) = jars.glob("*spyt-patch-agent*.jar")
    # On a cluster SPYT's set-up gives executors its agent too (setup-spyt-env.sh); without it they
    # cannot read the expressions of a patched driver.
    return (
        "local-cluster[2,1,1024] --conf spark.executor.memory=1g "
        f"--conf spark.executor.extraJavaOptions=-javaagent:{agent}"
    )


@pytest.fixture(scope="module")
def project(generate: Generate) -> Path:
    return generate(guarantee="transactional", processing="map")


def _play(python: Path, project: Path, fault: str, cure: str) -> dict[str, Any]:
    done = subprocess.run(
        [python, WORKER, fault, cure],
        cwd=project,
        env={
            **os.environ,
            "PYSPARK_SUBMIT_ARGS": f"--master {_master(python, fault)} pyspark-shell",
            "PYTHONPATH": "",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr[-10_000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("cure", ["fence", "none"])
def test_a_write_fails_once(project: Path, environments: dict[str, Path], cure: str) -> None:
    """``local[2,4]`` brings its own limit, whatever the settings say: the fence stands alone."""
    result = _play(environments["4.1"] / "bin/python", project, "write", cure)
    assert result["lost"] == 0
    if cure == "fence":
        assert "fence" in result["failure"]
        assert result["duplicated"] == 0
    else:
        assert not result["failure"]
        assert result["duplicated"] > 0


@pytest.mark.parametrize("cure", ["all", "fence", "none"])
def test_executors_die_while_they_write(
    project: Path, environments: dict[str, Path], cure: str
) -> None:
    result = _play(environments["4.1"] / "bin/python", project, "executor", cure)
    assert result["lost"] == 0
    if cure == "none":
        assert not result["failure"]
        assert result["duplicated"] > 0
    else:
        assert result["failure"]
        assert result["duplicated"] == 0
