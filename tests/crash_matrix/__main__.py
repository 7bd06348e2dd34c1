"""`python -m tests.crash_matrix`: two live drivers, paused or late at every point of a batch."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.crash_matrix.cases import Case, Variant, chosen
from tests.crash_matrix.play import Result, SpoiltError, play, project_of
from tests.project import ROOT

LOGS = ROOT / "build" / "crash-matrix"
#: No JVM lives long enough here for its second compiler to pay.
SUBMIT_ARGS = "--driver-java-options -XX:TieredStopAtLevel=1 --master local[2] pyspark-shell"

console = Console(width=120, highlight=False)


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when every case holds, else 1."""
    parser = argparse.ArgumentParser("python -m tests.crash_matrix", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of the cases to play")
    parser.add_argument("--list", action="store_true", help="show the names, play nothing")
    given = parser.parse_args(words)
    cases = chosen(given.only)
    if not cases:
        parser.error(f"no case has {given.only!r} in its name; --list shows all names")
    if given.list:
        print(*(case.name for case in cases), sep="\n")
        return 0
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", SUBMIT_ARGS)
    LOGS.mkdir(parents=True, exist_ok=True)
    table = Table(title=f"{len(cases)} cases", caption=f"logs of both drivers: {LOGS}")
    for column in ("case", "seconds", "lost", "duplicated", "the older driver", ""):
        table.add_column(column, justify="right" if column in _FIGURES else "left")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:

        @cache
        def project(variant: Variant) -> Path:
            (root := Path(folder, "-".join(map(str, variant)))).mkdir()
            return project_of(variant, root)

        for case in cases:
            row = _row(case, project(case.variant))
            table.add_row(*row)
            console.print("  ".join(row), markup=False)
            failed += row[-1] != _HOLDS
    console.print(table)
    return int(failed > 0)


_FIGURES = ("seconds", "lost", "duplicated")
_HOLDS = "ok"


def _row(case: Case, project: Path) -> tuple[str, ...]:
    """Play the case and return its row of the table."""
    started = time.monotonic()
    result: Result | None = None
    try:
        result = play(case, project, LOGS)
        verdict = _HOLDS if result.holds else "FAILED"
    except SpoiltError as error:
        verdict = f"FAILED: {error}"
    seconds = f"{time.monotonic() - started:.0f}"
    if result is None:
        return case.name, seconds, "", "", "", verdict
    return case.name, seconds, str(result.lost), str(result.duplicated), result.ended, verdict


if __name__ == "__main__":
    raise SystemExit(main())
