"""The commands that a user of a generated project types, as the journeys type them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from tests.support.jvm import submit_args
from tests.support.project import ROOT

LINT_TEST_DEMO = ("lint", "test", "demo")


def result_of(
    project: Path,
    environment: Path,
    targets: Sequence[str],
    shell: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Run ``make`` with the targets, ``demo`` as the last one; return the figures of its RESULT."""
    said = make(project, environment, *targets, shell=shell)
    return dict(word.split("=") for word in said.splitlines()[-1].split()[1:])


def make(
    project: Path, environment: Path, *words: str, shell: Mapping[str, str] = os.environ
) -> str:
    """Run ``make`` in a project and return its output; fail when it fails."""
    # Not the options of the make that runs the tests.
    inherited = {name: value for name, value in shell.items() if not name.startswith("MAKE")}
    return _run(["make", *words, "UV=", f"VENV={environment}"], project, inherited)


def run(project: Path, environment: Path, *words: str) -> str:
    """Run the environment's Python and return its output; fail when it fails."""
    path = os.pathsep.join(map(str, (project / "src", project, ROOT)))
    python = str(environment / "bin" / "python")
    return _run([python, *words], project, {**os.environ, "PYTHONPATH": path})


def _run(words: list[str], project: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        words,
        cwd=project,
        env={**environment, "YTSTREAM_SUBMIT_ARGS": submit_args()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=2_400,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    return done.stdout


def edit(file: Path, changes: Mapping[str, str]) -> None:
    """Replace texts that are in the file once each."""
    text = file.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def module(file: Path) -> Any:
    """Import a file by itself."""
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
