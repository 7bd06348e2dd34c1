"""A rehearsal that something kills leaves no process and no folder behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import eventually

OWNER = """
import signal, sys, tempfile, time
from pathlib import Path
from minicluster import testing
from ytstream_tools.demo.guard import guarded
from ytstream_tools.demo.job_process import running

# A shell without job control starts what is in its background with SIGINT ignored (POSIX, 2.11).
signal.signal(signal.SIGINT, signal.default_int_handler)
tempfile.tempdir = sys.argv[1]
root, name = Path(sys.argv[1]), tempfile.mkdtemp(prefix="rehearsal-")
with guarded(folder=name), testing.start() as cluster:
    with running("waiting", cluster.http, Path(name, "log"), root) as job:
        print(job.pgid, cluster.pid, flush=True)
        time.sleep(600)
"""
"""What rehearse() holds open while a version runs, with a job that only waits."""


@pytest.fixture
def owner(tmp_path: Path) -> subprocess.Popen[str]:
    package = tmp_path / "src" / "waiting"
    package.mkdir(parents=True)
    (package / "__main__.py").write_text("import time\ntime.sleep(600)\n")
    return subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )


def _is_alive(pid: int) -> bool:
    """Return whether a process runs; one that waits for its parent to look is dead."""
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(listed.stdout.strip()) and not listed.stdout.strip().startswith("Z")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_whatever_ends_a_rehearsal_ends_its_job_and_its_minicluster(
    owner: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    assert owner.stdout is not None
    pids = [int(pid) for pid in owner.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(_is_alive, pids))
    owner.send_signal(number)
    owner.communicate()
    eventually(lambda: not any(map(_is_alive, pids)))
    if number == signal.SIGKILL:  # else a caller of guarded() removes its folder itself
        eventually(lambda: sorted(path.name for path in tmp_path.iterdir()) == ["src"])
