"""Jobs with state go on with another Spark, in the middle of open windows and sessions."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from local_extensions.versions import SPARK, SPARK_VERSIONS
from minicluster import testing
from tests.support.examples import STATEFUL
from tests.support.jvm import submit_args
from tests.support.project import ROOT
from tests.support.state_on_other_spark import name_of
from ytstream.settings.spark_conf import STATE_STORES

pytestmark = [pytest.mark.journey, pytest.mark.spark, pytest.mark.other_spark]

OLDER = [name for name in SPARK_VERSIONS if name != SPARK]
MOVES = [*((old, SPARK) for old in OLDER), *((SPARK, old) for old in OLDER)]


@pytest.mark.parametrize("processing", STATEFUL)
@pytest.mark.parametrize(("first", "second"), MOVES)
def test_every_row_is_there_once(
    environments: dict[str, Path], tmp_path: Path, first: str, second: str, processing: str
) -> None:
    sent = tmp_path / "sent"
    with testing.start() as cluster:
        _play(environments[first], cluster.http, "first", sent, processing)
        said = _play(environments[second], cluster.http, "second", sent, processing)
    found = dict(json.loads(line) for line in said.splitlines() if line.startswith("["))
    assert found == {name_of(processing, store): "exact" for store in STATE_STORES}


def _play(environment: Path, proxy: str, half: str, sent: Path, processing: str) -> str:
    own = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    done = subprocess.run(
        [
            environment / "bin/python",
            "-m",
            "tests.support.state_on_other_spark",
            proxy,
            half,
            sent,
            processing,
        ],
        cwd=ROOT,
        env={**own, "PYTHONPATH": "", "YTSTREAM_SUBMIT_ARGS": submit_args()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    return done.stdout
