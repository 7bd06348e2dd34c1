"""How long a new project takes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.table import Table

from tests.project import ROOT, generate

RUNS = 7


def from_the_command_line(folder: Path) -> None:
    """Generate as a user does: in a new process each time."""
    words = ["cookiecutter", str(ROOT), "--no-input", "--default-config", "-o", str(folder)]
    subprocess.run([sys.executable, "-m", *words], check=True)


def in_one_process(folder: Path) -> None:
    """Generate as a test does."""
    generate(folder)


CASES: dict[str, Callable[[Path], None]] = {
    "generate a project, command line": from_the_command_line,
    "generate a project, in one process": in_one_process,
}


def seconds(case: Callable[[Path], None]) -> float:
    """Return the wall-clock seconds of one run in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        case(Path(folder))
        return time.perf_counter() - start


def tables() -> Iterator[Table]:
    """Yield each figure over several runs."""
    table = Table("what", "median, s", "fastest, s", "slowest, s")
    for what, case in CASES.items():
        times = [seconds(case) for _ in range(RUNS)]
        figures = (statistics.median(times), min(times), max(times))
        table.add_row(what, *(f"{figure:.2f}" for figure in figures))
    yield table
