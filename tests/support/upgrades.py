"""A repository of the template with today's files, and cruft's commands on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.project import ROOT


def git(folder: Path, *words: str) -> None:
    """Run git with an identity of its own, whatever the machine's settings."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def template_as_it_stands(folder: Path) -> Path:
    """Return a repository with the template's files as they are now, committed or not."""
    clone = folder / "template"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_bytes((ROOT / name).read_bytes())
        else:
            (clone / name).unlink(missing_ok=True)
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "as it stands")
    return clone


def cruft(folder: Path, *words: str) -> None:
    done = cruft_said(folder, *words)
    assert done.returncode == 0, done.stdout + done.stderr


def cruft_said(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cruft", *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def commit(project: Path, message: str) -> None:
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", message)
