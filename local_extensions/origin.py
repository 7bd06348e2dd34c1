"""The version and the commit of the template, which a generated project records."""

from __future__ import annotations

import re
from pathlib import Path

VERSION = "1.0.0"


def commit(checkout: Path) -> str:
    """Return the commit that is checked out in this folder; "" if it is no git checkout.

    Reads git's own files: generating needs no git. See gitrepository-layout(5).
    """
    git = checkout / ".git"
    try:
        if git.is_file():  # a worktree or a submodule
            git = checkout / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        found = _of_branch(git, head.removeprefix("ref: ")) if head.startswith("ref: ") else head
    except OSError:
        return ""
    return found if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", found) else ""


def _of_branch(git: Path, name: str) -> str:
    """Return the commit of a branch: in a file of its own, or in the list of packed ones."""
    shared = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
    if (shared / name).is_file():
        return (shared / name).read_text().strip()
    packed = (line.split() for line in (shared / "packed-refs").read_text().splitlines())
    return next((words[0] for words in packed if words[1:] == [name]), "")
