"""kill -9 at the worst request, a restart, and a count of every row; a stop before the start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import PACKAGE

from demo.__main__ import MAY_REPEAT
from demo.scenario import play
from minicluster import testing


@contextmanager
def _unwatched(_title: str, _goal: int) -> Iterator[Callable[[int], None]]:
    yield lambda _rows: None


def test_the_guarantee_survives_a_kill(tmp_path: Path) -> None:
    with testing.start() as cluster:
        result = play(cluster, tmp_path / "job.log", print, _unwatched)

    assert result.rows_in > 0
    assert result.kills == 1
    assert result.outcome.lost == 0
    # A kill that left no trace would prove nothing about a guarantee that may repeat rows.
    assert (result.outcome.duplicated > 0) == MAY_REPEAT


@pytest.mark.parametrize("words", [["-m", PACKAGE, "run"], ["main.py"], ["submit.py"]])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_imports_ends_in_one_line(
    tmp_path: Path, words: list[str], number: signal.Signals
) -> None:
    (tmp_path / "spyt.py").write_text(f"import os\nos.kill(os.getpid(), {number})\n")
    root = Path(__file__).parents[1]
    path = os.pathsep.join([str(tmp_path), str(root / "src")])
    done = subprocess.run(
        [sys.executable, *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (128 + number, "stopped before the start\n")
