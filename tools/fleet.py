"""Keep many generated repositories in step with the template.

    python -m tools.fleet versions REPOSITORIES
    python -m tools.fleet update REPOSITORIES --to v1.2.0 [--push] [--open COMMAND]

REPOSITORIES is a file with the URL or the path of a repository on each line. Every update is a
branch of its own in a clone below build/fleet. One in which an owner's edit and the template's meet
is not committed: a person has to look at it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.example import ROOT

WORK = ROOT / "build" / "fleet"
_MARKER = re.compile(r"^(<<<<<<<|>>>>>>>) ", re.MULTILINE)
_GOOD = ("current", "updated", "pushed", "opened")


class Outcome(NamedTuple):
    """The status of a repository: a word, and what a person must know."""

    repository: str
    word: str
    detail: str = ""


class CommandError(Exception):
    """A command failed; the text is the last line that it said."""


def environment() -> dict[str, str]:
    """Return what commands run with.

    git does not ask for a password. cruft imports the extension of the commit that it checked out:
    a PYTHONPATH would lead it to another one.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "GIT_TERMINAL_PROMPT": "0"}


def said(folder: Path, *words: str) -> str:
    """Run a command in ``folder`` and return what it printed. Raises CommandError."""
    done = subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise CommandError(f"{' '.join(words[:2])}: {lines[-1] if lines else done.returncode}")
    return done.stdout


def repositories(file: Path) -> list[str]:
    """Return the lines of the file but for empty ones and comments; paths are relative to it."""
    lines = (line.partition("#")[0].strip() for line in file.read_text().splitlines())
    found = [line for line in lines if line]
    return [str(file.parent / line) if (file.parent / line).is_dir() else line for line in found]


def cloned(repository: str, work: Path) -> Path:
    """Return a fresh clone, named as the repository is. Raises CommandError."""
    name = re.sub(r"[^\w.-]", "-", repository.rstrip("/").removesuffix(".git").split("/")[-1])
    folder = work / name
    shutil.rmtree(folder, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    said(work, "git", "clone", "--quiet", "--", repository, name)
    return folder


def version(clone: Path) -> str:
    """Return the template's version that a repository was made from, or last updated to."""
    try:
        tools = tomllib.loads((clone / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
        return str(tools["ytstream-template"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        why = "its newest commit has no version of the template in pyproject.toml"
        raise CommandError(why) from None


def described(repository: str, work: Path) -> Outcome:
    """Return the repository's version, and what kind of job it is."""
    clone = cloned(repository, work)
    if not (clone / ".cruft.json").is_file():
        return Outcome(repository, version(clone), "no .cruft.json: cruft link, once")
    answers = json.loads((clone / ".cruft.json").read_text())["context"]["cookiecutter"]
    kind = (answers.get(name, "?") for name in ("guarantee", "processing", "spark_version"))
    return Outcome(repository, version(clone), " ".join(kind))


def conflicts(clone: Path) -> Iterator[str]:
    """Yield the files with a conflict: unmerged, with a marker, or with a change left beside it."""
    changed = said(clone, "git", "status", "--porcelain", "-z", "--untracked-files=all")
    # Of a renamed file the former name follows, as an entry without a status.
    for entry in filter(None, changed.split("\0")):
        state, file = entry[:2], clone / entry[3:]
        has_marker = file.is_file() and _MARKER.search(file.read_text(errors="replace"))
        if "U" in state or entry.endswith(".rej") or has_marker:
            yield entry[3:]


def updated(repository: str, work: Path, to: str, push: bool, opening: str) -> Outcome:
    """Take version ``to`` over on a branch; push it and open a change where that is asked for."""
    clone = cloned(repository, work)
    branch = f"template-{to}"
    if said(clone, "git", "ls-remote", "--heads", "origin", branch):
        return Outcome(repository, "current", f"{branch} is there already")
    said(clone, "git", "switch", "--quiet", "--create", branch)
    cruft = (sys.executable, "-m", "cruft", "update", "--skip-apply-ask", "--checkout", to)
    before = version(clone)
    said(clone, *cruft)
    if found := sorted({*conflicts(clone)}):
        return Outcome(repository, "CONFLICT", f"{', '.join(found)} in {clone}")
    if not said(clone, "git", "status", "--porcelain"):
        return Outcome(repository, "current", version(clone))
    said(clone, "git", "add", "--all")
    title = f"Template {before} -> {version(clone)}"
    said(clone, "git", "commit", "--quiet", "--message", title)
    if push or opening:
        said(clone, "git", "push", "--quiet", "origin", branch)
    if opening:
        said(clone, *shlex.split(opening))
    return Outcome(repository, "opened" if opening else "pushed" if push else "updated", title)


def attempted(arguments: argparse.Namespace) -> Iterator[Outcome]:
    """Yield the outcome of each repository; one that fails does not end the others."""
    for repository in repositories(arguments.repositories):
        try:
            if arguments.command == "versions":
                yield described(repository, arguments.work)
            else:
                asked = (arguments.to, arguments.push, arguments.open)
                yield updated(repository, arguments.work, *asked)
        except CommandError as failure:
            yield Outcome(repository, "FAILED", str(failure))


def main(words: list[str]) -> int:
    """Print a line for each repository; 1 when a person has to look at one of them."""
    arguments = _parser().parse_args(words)
    bad = 0
    for outcome in attempted(arguments):
        print("  ".join(filter(None, outcome)), flush=True)
        bad += outcome.word not in _GOOD and arguments.command == "update"
        bad += outcome.word == "FAILED" and arguments.command == "versions"
    return int(bad > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.fleet")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("versions", "update"):
        command = commands.add_parser(name)
        command.add_argument("repositories", type=Path)
        command.add_argument("--work", type=Path, default=WORK, help="where the clones are made")
    command.add_argument("--to", required=True, help="the release of the template: v1.2.0")
    command.add_argument("--push", action="store_true", help="push the branches")
    command.add_argument("--open", default="", metavar="COMMAND", help="such as 'gh pr create -f'")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
