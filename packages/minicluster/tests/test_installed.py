"""The package by itself: the test of its README, and an environment that has nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from local_extensions import wheels
from local_extensions.versions import requirement
from tests.support.project import ROOT

PAGE = (ROOT / "packages/minicluster/README.md").read_text(encoding="utf-8")
TEST = re.search(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
"""The first block of Python is a test."""


def _write(folder: Path, name: str = "test_page.py") -> Path:
    assert TEST is not None
    (folder / name).write_text(TEST[1])
    return folder / name


def _run(python: Path | str, *words: str | Path, path: str = "") -> str:
    done = subprocess.run(
        [python, "-m", *words],
        env={**os.environ, "PYTHONPATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.thorough
def test_the_test_of_the_page_passes_and_a_second_one_finds_a_clean_cluster(tmp_path: Path) -> None:
    first, second = _write(tmp_path), _write(tmp_path, "test_again.py")
    code = "import importlib.metadata as m; print(*m.entry_points(group='pytest11'))"
    named = "minicluster.plugin" in _run_code(code)
    plugin = () if named else ("-p", "minicluster.plugin")
    path = str(ROOT / "packages/minicluster/src")
    words = ("--rootdir", tmp_path, "-p", "no:cacheprovider", "-q", *plugin)
    assert "2 passed" in _run(sys.executable, "pytest", *words, first, second, path=path)


def _run_code(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.thorough
@pytest.mark.slow
def test_alone_in_an_empty_environment_it_serves_http_and_says_what_rpc_needs(
    tmp_path: Path,
) -> None:
    """From its wheel and the package index, without this template's packages."""
    _run(sys.executable, "venv", tmp_path / "alone")
    python = tmp_path / "alone/bin/python"
    built = wheels.build(ROOT / "packages/minicluster", tmp_path)
    _run(python, "pip", "install", "--quiet", built, requirement("pytest"))
    assert "1 passed" in _run(python, "pytest", "-q", _write(tmp_path))
    installed = _run(python, "pip", "list")
    assert "minicluster" in installed
    assert "spyt" not in installed
    assert "protobuf" not in installed
    done = subprocess.run(
        [python, "-m", "minicluster", "--rpc-proxies", "1"],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "RPC needs protobuf, grpcio-tools, ytsaurus-spyt: pip install" in done.stderr
