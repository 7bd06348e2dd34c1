"""Line endings: LF in every checkout and every generated file, whatever git is told to write."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cookiecutter.main import cookiecutter

from tests.conftest import Generate
from tests.support.project import ROOT, user_config

BINARY = (".whl", ".png")
"""Wheels and pictures may have any bytes."""
COMMIT = ("-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "-m", "x")


def with_returns(folder: Path) -> list[str]:
    """Return the text files that have a carriage return."""
    return [
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and ".git" not in file.relative_to(folder).parts
        if file.suffix not in BINARY and b"\r" in file.read_bytes()
    ]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def clone_of(files: Path, folder: Path) -> Path:
    """Commit the files of a folder and clone them as someone with core.autocrlf=true does."""
    origin = shutil.copytree(files, folder / "origin", ignore=shutil.ignore_patterns(".git"))
    git(origin, "init", "--quiet")
    git(origin, "add", "--all")
    git(origin, *COMMIT)
    git(folder, "clone", "--quiet", "-c", "core.autocrlf=true", str(origin), "clone")
    return folder / "clone"


def test_a_clone_of_a_project_has_lf(generate: Generate, tmp_path: Path) -> None:
    project = generate()
    assert not with_returns(project)
    assert not with_returns(clone_of(project, tmp_path))
    (project / ".gitattributes").unlink()
    (bare := tmp_path / "bare").mkdir()
    assert with_returns(clone_of(project, bare))  # git's default


def test_a_clone_of_the_template_has_lf(tmp_path: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (file := ROOT / name).is_file():
            (target := tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    assert not with_returns(clone_of(tmp_path / "files", tmp_path))


@pytest.mark.parametrize("folder", ["{{cookiecutter.project_slug}}", "templates"])
def test_a_template_with_crlf_generates_lf(tmp_path: Path, folder: str) -> None:
    template = tmp_path / "template"
    for name in ("{{cookiecutter.project_slug}}", "templates", "local_extensions", "packages"):
        shutil.copytree(ROOT / name, template / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "hooks", template / "hooks")
    for name in ("cookiecutter.json", "LICENSE"):
        shutil.copy(ROOT / name, template)
    for file in (template / folder).rglob("*"):
        if file.is_file() and file.suffix not in BINARY:
            file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    made = cookiecutter(
        str(template),
        no_input=True,
        output_dir=str(tmp_path),
        config_file=str(user_config(tmp_path)),
    )
    assert not with_returns(Path(made))
