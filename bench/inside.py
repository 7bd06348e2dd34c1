"""Scripts of this folder, run by the interpreter inside a generated project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.project import ROOT


def run(script: str, project: Path, *words: str) -> dict[str, Any]:
    """Return the figures that ``python script OUTCOME words...`` wrote to OUTCOME.

    Raises subprocess.CalledProcessError.
    """
    outcome = project / "build" / "outcome.json"
    outcome.parent.mkdir(exist_ok=True)
    paths = (project / "src", project, ROOT)
    subprocess.run(
        [sys.executable, str(ROOT / "bench" / script), str(outcome), *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stdin=subprocess.DEVNULL,
        check=True,
    )
    figures: dict[str, Any] = json.loads(outcome.read_text())
    return figures
