"""`make proof MUTANTS=1`: takes each fix out of the runtime, and runs the tests that must turn red.

Each mutant is a worktree of the last commit with a few lines changed. A mutant that leaves its
tests green survives, and the command ends with exit code 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.faults.mutants.table import MUTANTS, Mutant, applied
from tests.support.project import ROOT
from ytstream.text_table import table

TREE = ROOT / "build" / "mutant"
"""One worktree serves all mutants: what a test compiles or caches stays."""
_FAILED = 1
"""pytest's exit code for a test that has failed; other codes mean that no test has run."""
_SECONDS = 1_200
"""How long the tests of one mutant may take. A runtime without a fix may also hang: that is red."""


class Outcome(NamedTuple):
    """What the tests of a mutant said."""

    mutant: Mutant
    verdict: str
    by: str
    """The first test that was red."""
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen mutants; return 1 if one survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutants", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="a part of the names")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    given = parser.parse_args(arguments)
    chosen = [one for one in MUTANTS if given.only in one.name]
    if not chosen:
        parser.error(f"no mutant has {given.only!r} in its name; --list prints the names")
    if given.list:
        print(*(one.name for one in chosen), sep="\n")
        return 0
    print("the tests on the source as it is ...", flush=True)
    if red := _red_as_it_is(chosen):
        print(f"{red} is red without a patch, so it says nothing of one")
        return 1
    outcomes = []
    for number, mutant in enumerate(chosen, 1):
        print(f"{number} of {len(chosen)}: without this fix: {mutant.name} ...", flush=True)
        outcomes.append(outcome := _played(mutant))
        print(f"  {outcome.verdict} in {outcome.seconds:.0f} s: {outcome.by}", flush=True)
    rows = [(outcome.mutant.name, outcome.verdict, outcome.by) for outcome in outcomes]
    print(table(("without this fix", "verdict", "by"), rows))
    survivors = [one for one in outcomes if one.verdict != "red"]
    print(f"{len(outcomes) - len(survivors)} of {len(outcomes)} mutants are red")
    return 1 if survivors else 0


def _played(mutant: Mutant) -> Outcome:
    began = time.monotonic()
    _fresh_tree()
    for edit in mutant.edits:
        path = TREE / edit.path
        path.write_text(applied(edit, path.read_text(encoding="utf-8")), encoding="utf-8")
    try:
        ran = _ran(mutant.tests, _SECONDS)
    except subprocess.TimeoutExpired:
        return Outcome(mutant, "red", f"not over after {_SECONDS} s", time.monotonic() - began)
    verdict = {_FAILED: "red", 0: "SURVIVES"}.get(ran.returncode, "NOT RUN")
    return Outcome(mutant, verdict, _first_red(ran.stdout), time.monotonic() - began)


def _red_as_it_is(chosen: Sequence[Mutant]) -> str:
    """Return the first of the tests that is red on the last commit, or nothing."""
    _fresh_tree()
    ran = _ran(sorted({test for mutant in chosen for test in mutant.tests}), None)
    return _first_red(ran.stdout) if ran.returncode else ""


def _ran(tests: Sequence[str], seconds: float | None) -> subprocess.CompletedProcess[str]:
    """Run tests in the worktree. Raises subprocess.TimeoutExpired."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *tests], cwd=TREE, capture_output=True, text=True, timeout=seconds, check=False
    )


def _first_red(said: str) -> str:
    """Return the first test that has failed, or pytest's last line."""
    lines = said.strip().splitlines()
    red = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    found = red[0].split(" ")[1] if red else (lines or ["pytest said nothing"])[-1]
    return found.removeprefix("packages/ytstream/tests/")


def _fresh_tree() -> None:
    """Bring the worktree to the last commit, without what a former mutant has changed."""
    commit = _git("rev-parse", "HEAD").strip()
    if not (TREE / ".git").exists():
        _git("worktree", "prune")
        _git("worktree", "add", "--force", "--detach", str(TREE), commit)
    _git("checkout", "--quiet", "--force", "--detach", commit, at=TREE)


def _git(*words: str, at: Path = ROOT) -> str:
    ran = subprocess.run(["git", *words], cwd=at, capture_output=True, text=True, check=True)
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
