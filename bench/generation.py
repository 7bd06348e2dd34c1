"""How long a new project takes: by this template, and by others in folders that BESIDE names.

    BESIDE="FOLDER FOLDER" python -m bench generation

The templates take turns, so that whatever else the machine does slows all of them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from tests.support.project import ROOT, generate

RUNS = 9


def from_the_command_line(template: Path) -> float:
    """Return the wall-clock seconds of a generation as a user does it, in a new process.

    Raises subprocess.CalledProcessError with what cookiecutter said.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = ["cookiecutter", str(template), "--no-input", "--default-config", "-o", folder]
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", *words], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def in_one_process() -> float:
    """Return the seconds of a generation as a test does it."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        generate(Path(folder))
        return time.perf_counter() - start


def tables() -> Iterator[Table]:
    """Yield each figure over several runs."""
    templates = [ROOT, *map(Path, os.environ.get("BESIDE", "").split())]
    rounds = [[from_the_command_line(path) for path in templates] for _ in range(RUNS)]
    names = ["this template", *(path.name for path in templates[1:])]
    times = dict(zip(names, zip(*rounds, strict=True), strict=True))
    times["this template, in one process"] = tuple(in_one_process() for _ in range(RUNS))
    table = Table("what", "median, s", "fastest, s", "slowest, s", title=f"{RUNS} rounds")
    for what, seconds in times.items():
        figures = (statistics.median(seconds), min(seconds), max(seconds))
        table.add_row(what, *(f"{figure:.2f}" for figure in figures))
    yield table
