"""`make test-cluster` on a minicluster: nothing differs from what it says of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from yt.wrapper import YtClient

from minicluster import testing
from tests.faults.operations.job_site import submit_part
from tests.support.project import ROOT
from tools.cluster_trial import STEPS, Seen, differences


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


@pytest.mark.thorough
@pytest.mark.slow
def test_a_cluster_that_runs_no_operations_differs_from_the_submit_on() -> None:
    with testing.start() as cluster:
        done = _tried(cluster.http)
        assert YtClient(cluster.http, token="any").list("//tmp") == []
    assert done.returncode == 1
    assert "  provision: done\n" in done.stdout
    assert "submit: failed: `submit` ended with 1" in done.stdout
    assert "not tried after that: attempts at the end of the queue, " in done.stdout


def test_without_a_token_nothing_is_asked() -> None:
    done = _tried("cluster.example.com")
    assert done.returncode == 1
    assert done.stderr.startswith("error [token]: no token for cluster.example.com")
    assert "Traceback" not in done.stderr


_ALONE = """
import sys
from tools import cluster_trial
cluster_trial.conformance = lambda proxy: []
cluster_trial.run(sys.argv[1:])
"""
"""Without the conformance suite, which takes minutes."""


def _tried(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _ALONE, *words],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("YT_")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
def test_a_minicluster_differs_in_nothing(tmp_path: Path) -> None:
    settings = tmp_path / "keys.toml"
    settings.write_text(submit_part())
    with testing.start(operations=True) as cluster:
        done = subprocess.run(
            [sys.executable, "-m", "tools.cluster_trial", cluster.http, f"--settings={settings}"],
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
