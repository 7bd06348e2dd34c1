"""The tools that generate: versions that are too old, and two commits in one process."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local_extensions import refuse_old_tools
from tests.support.project import ROOT


@pytest.mark.parametrize(
    ("python", "cookiecutter", "said"),
    [
        ((3, 9), "2.6.0", "needs Python 3.11 or later for cookiecutter, and this is Python 3.9"),
        ((3, 11), "2.1.1", "needs cookiecutter 2.2 or later, and this is 2.1.1"),
        ((3, 11), "1.7.3", "needs cookiecutter 2.2 or later"),
    ],
)
def test_an_old_tool_is_refused_on_one_line(
    python: tuple[int, ...], cookiecutter: str, said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        refuse_old_tools(python, cookiecutter)
    text = str(ended.value)
    assert said in text
    assert "pipx install --force" in text
    assert "\n" not in text


@pytest.mark.parametrize("cookiecutter", ["2.1.2.dev0", "2.2.1", "2.7.1", "2.10.0", "3.0.0"])
def test_newer_tools_are_taken(cookiecutter: str) -> None:
    refuse_old_tools((3, 11), cookiecutter)
    refuse_old_tools((4, 0), cookiecutter)


AS_AN_OLDER = """
import cookiecutter
cookiecutter.__version__ = "2.1.1"
from cookiecutter.cli import main
main()
"""


def test_an_old_cookiecutter_ends_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    words = ["--no-input", "--default-config", "-o", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", AS_AN_OLDER, str(ROOT), *words],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: this template needs cookiecutter 2.2 or later")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_old_python_can_read_what_refuses_it() -> None:
    """Its first line, ``from __future__ import annotations``, needs 3.7; the rest no more."""
    text = (ROOT / "local_extensions/__init__.py").read_text()
    ast.parse(text, feature_version=(3, 7))


# One pin, rendered before and after its file changes within the second and to the same size.
TWO_COMMITS = """
import os, sys
from pathlib import Path
from jinja2 import Environment

sys.modules["cruft"] = sys  # any module: the command that renders
file = Path("local_extensions/versions.py")
for old, new in (("", ""), ('"ruff", "0', '"ruff", "9')):
    file.write_text(file.read_text().replace(old, new, 1))
    os.utime(file, (1, 1))
    environment = Environment(extensions=["local_extensions.TemplateExtension"])
    print(environment.from_string("{{ pin('ruff')[0] }}").render())
"""


@pytest.mark.parametrize("caller", ["cruft", "other"])
def test_cruft_gets_the_pins_of_the_commit_that_it_renders(tmp_path: Path, caller: str) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "local_extensions", tmp_path / "local_extensions", ignore=ignored)
    shutil.copy(ROOT / "cookiecutter.json", tmp_path)
    shutil.copytree(ROOT / "packages", tmp_path / "packages", ignore=ignored)
    done = subprocess.run(
        [sys.executable, "-c", TWO_COMMITS.replace("cruft", caller)],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["0", "9" if caller == "cruft" else "0"]
