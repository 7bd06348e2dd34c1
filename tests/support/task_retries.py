"""Plays what retries_worker.py plays, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ytstream

_ROOT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 600


def play(fault: str, *fixes: str) -> list[dict[str, Any]]:
    """Return for each fix the failure that ended the query, and the rows lost and repeated."""
    paths = (Path(ytstream.__file__).parents[1], _ROOT)
    # SPYT leaves files where its processes are started.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.task_retries_worker", fault, *fixes],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
            start_new_session=True,
        )
    assert done.returncode == 0, done.stderr[-10_000:]
    return [json.loads(line) for line in done.stdout.splitlines()[-len(fixes) :]]
