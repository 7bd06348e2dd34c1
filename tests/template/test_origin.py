"""The commit that a generated project records, read from git's files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from local_extensions import versions


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    command = ["git", *identity, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder


def test_of_a_branch(checkout: Path) -> None:
    assert versions.commit(checkout) == git(checkout, "rev-parse", "HEAD")


def test_of_a_packed_branch(checkout: Path) -> None:
    git(checkout, "tag", "1.0.0", "--annotate", "--message", "a line that begins with ^ is packed")
    git(checkout, "pack-refs", "--all")
    assert versions.commit(checkout) == git(checkout, "rev-parse", "HEAD")


def test_of_a_tag_that_is_checked_out(checkout: Path) -> None:
    git(checkout, "tag", "1.0.0")
    git(checkout, "checkout", "--quiet", "1.0.0")
    assert versions.commit(checkout) == git(checkout, "rev-parse", "HEAD")


def test_of_a_worktree(checkout: Path) -> None:
    git(checkout, "worktree", "add", "--quiet", "../other", "-b", "other")
    git(checkout.parent / "other", "commit", "--quiet", "--allow-empty", "--message", "second")
    here, there = versions.commit(checkout), versions.commit(checkout.parent / "other")
    assert there == git(checkout, "rev-parse", "other") != here


def test_of_a_branch_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert versions.commit(tmp_path) == ""


def test_of_a_folder_without_git(tmp_path: Path) -> None:
    assert versions.commit(tmp_path) == ""
