"""Tasks that Spark starts again inside a transaction: with the job's cures, and without them.

A failed attempt has sent part of its rows into the batch's transaction already. ``local[2,4]``
retries as a cluster does, ``local-cluster`` runs executors as processes of a standalone cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import ytstream
from tests.jvm import submit_args

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 600

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def _master(fault: str) -> str:
    if fault == "write":
        return "local[2,4]"
    spyt = find_spec("spyt")
    assert spyt is not None
    assert spyt.origin is not None
    (agent,) = (Path(spyt.origin).parent / "jars" / "common").glob("*spyt-patch-agent*.jar")
    # On a cluster SPYT's set-up gives executors its agent too (setup-spyt-env.sh); without it they
    # cannot read the expressions of a patched driver.
    return (
        "local-cluster[2,1,1024] --conf spark.executor.memory=1g "
        f"--conf 'spark.executor.extraJavaOptions=-javaagent:{agent} -XX:TieredStopAtLevel=1'"
    )


def _play(fault: str, *cures: str) -> list[dict[str, Any]]:
    paths = (Path(ytstream.__file__).parents[1], ROOT)
    # SPYT's executors of local-cluster leave files where they are started.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "packages.ytstream.tests.retries_worker", fault, *cures],
            cwd=folder,
            env={
                **os.environ,
                "PYSPARK_SUBMIT_ARGS": submit_args(_master(fault)),
                "PYTHONPATH": os.pathsep.join(map(str, paths)),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
            start_new_session=True,
        )
    assert done.returncode == 0, done.stderr[-10_000:]
    return [json.loads(line) for line in done.stdout.splitlines()[-len(cures) :]]


def test_a_write_fails_once() -> None:
    """``local[2,4]`` overrides the limit in the settings, so the fence is the only cure left."""
    fenced, bare = _play("write", "fence", "none")
    assert "fence" in fenced["failure"]
    assert (fenced["lost"], fenced["duplicated"]) == (0, 0)
    assert (bare["lost"], bare["failure"]) == (0, "")
    assert bare["duplicated"] > 0


@pytest.mark.journey  # in `make test`: a failed write, above, and what happens without the fence
@pytest.mark.parametrize("cure", ["all", "fence", "none"])
def test_executors_die_while_they_write(cure: str) -> None:
    (result,) = _play("executor", cure)
    assert result["lost"] == 0
    if cure == "none":
        assert not result["failure"]
        assert result["duplicated"] > 0
    else:
        assert result["failure"]
        assert result["duplicated"] == 0
