"""A generated job that runs from what `submit` ships, with nothing of the repository in reach."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from minicluster.testing import Running
from tests.support.project import generate
from tests.support.waiting import eventually
from ytstream.cluster.client import client_of
from ytstream_tools.demo.job_process import environment

ROWS = 200
PATIENCE_SECONDS = 300
_READ = 'int(files(__package__ or "").joinpath("rate.txt").read_text())'
"""A data file of the package, as docs and messages say to read it."""
_ARCHIVE = (
    "from pathlib import Path; from ytstream.declaration.archive import archive\n"
    'archive("bids_stream", Path("dist"))'
)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.thorough
def test_a_job_runs_from_the_archive_that_submit_ships(
    tmp_path: Path, minicluster: Running
) -> None:
    project = generate(tmp_path)
    _read_the_rate_from_a_file(project / "src/bids_stream")
    at_home = environment(minicluster.http, project)
    for words in (
        ["-m", "bids_stream", "provision"],
        ["-m", "bids_stream", "rows", "--count", str(ROWS)],
        ["-c", _ARCHIVE],
    ):
        done = subprocess.run(
            [sys.executable, *words], cwd=project, env=at_home, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    (node := tmp_path / "node").mkdir()
    for name in ("dist/bids_stream.zip", "main.py", "config/local.toml"):
        shutil.copy(project / name, node)
    shutil.rmtree(project)
    with (node / "log").open("wb") as log:
        job = subprocess.Popen(
            [sys.executable, "main.py", "--config", "local.toml"],
            cwd=node, env={**at_home, "PYTHONPATH": "bids_stream.zip"},
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        found = _outputs(minicluster, job, node / "log")
        job.send_signal(signal.SIGTERM)
        assert job.wait(PATIENCE_SECONDS) == 0
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
    assert found == ROWS


def _read_the_rate_from_a_file(package: Path) -> None:
    (package / "rate.txt").write_text("908")
    text = (package / "transform.py").read_text()
    text = text.replace("EUR_PER_1000_USD = 908", f"EUR_PER_1000_USD = {_READ}")
    head = "from pyspark.sql import DataFrame\n"
    (package / "transform.py").write_text(
        text.replace(head, f"from importlib.resources import files\n\n{head}", 1)
    )


def _outputs(cluster: Running, job: subprocess.Popen[bytes], log: Path) -> int:
    """Wait until each row is in an output, and return how many are."""
    client = client_of(cluster.http, "")
    tables = [f"//home/ytstream/job/{name}" for name in ("output", "rejected")]

    def found() -> int:
        return sum(len([*client.select_rows(f"* from [{table}]")]) for table in tables)

    eventually(
        lambda: found() >= ROWS,
        PATIENCE_SECONDS,
        meanwhile=lambda: job.poll() is None,
        said=log.read_text,
        pause=0.5,
    )
    return found()
