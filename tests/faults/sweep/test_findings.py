"""What docs/findings says of SPYT: each script, alone, against a minicluster with SPYT's jars."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from minicluster import testing
from tests.support.project import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.thorough]
FOLDER = ROOT / "docs" / "findings"
PAGE = (FOLDER / "README.md").read_text()
SAID = {name: [said] for name, said in re.findall(r"^\| `(\w+\.py)` \|.*\| `(.*)` \|$", PAGE, re.M)}
for name, said in re.findall(r"^`(\w+\.py)` then .*: `(.*)`\.$", PAGE, re.M):
    SAID[name].append(said)
LOCAL = (
    "--conf spark.driver.host=127.0.0.1 --conf spark.driver.bindAddress=127.0.0.1 "
    "--conf spark.driver.port=0 --conf spark.blockManager.port=0 --conf spark.ui.enabled=false"
)
"""What a machine without a name needs; a script has what SPYT needs."""

TOKEN = {"YT_TOKEN": "any", "YT_SECURE_VAULT_YT_TOKEN": "any"}
"""SPYT and the client look for it in the home otherwise."""


@pytest.mark.parametrize("name", ["loss.py", "stall.py", "repeats.py"])
def test_a_script_prints_what_the_page_says(name: str) -> None:
    with testing.start() as cluster:
        done = subprocess.run(
            [sys.executable, str(FOLDER / name), cluster.http, "//home/findings"],
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{LOCAL} pyspark-shell", **TOKEN},
        )
    assert done.returncode == 0, re.sub(r"\n\s+at .*", "", done.stderr)[-3_000:]
    assert done.stdout.splitlines()[-len(SAID[name]) :] == SAID[name]
