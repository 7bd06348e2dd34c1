"""`make test-cluster` on a minicluster: nothing differs from what it says of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from minicluster import testing
from tests.operations.cluster import submit_part
from tests.project import ROOT
from tools.trial import STEPS, Seen, differences


def test_a_step_that_gives_something_else_is_a_difference() -> None:
    seen = [Seen(step, step.expected, 1) for step in STEPS]
    assert differences(seen, []) == []
    seen[1] = Seen(STEPS[1], "failed: no nodes", 1)
    assert differences(seen, ["FAILED test_x.py::test_y - E"]) == [
        "submit: failed: no nodes\n  the minicluster: first batch",
        "conformance: FAILED test_x.py::test_y - E",
    ]


def test_steps_that_were_not_tried_are_named() -> None:
    [line] = differences([Seen(step, step.expected, 1) for step in STEPS[:-2]], [])
    assert line == "not tried after that: stop, rows"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
def test_a_minicluster_differs_in_nothing(tmp_path: Path) -> None:
    settings = tmp_path / "keys.toml"
    settings.write_text(submit_part())
    with testing.start(operations=True) as cluster:
        done = subprocess.run(
            [sys.executable, "-m", "tools.trial", cluster.http, "--settings", str(settings)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        client = cluster.client
        assert [one.state for one in client.operations.list()] == ["completed"] * 3
        kept = [line for line in done.stdout.splitlines() if "still there" in line]
    assert done.stdout.endswith("\n0 differences from the minicluster\n")
    assert (done.returncode, kept) == (0, [])
