"""SPYT is imported in every process that runs Python, however it was started."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.sparks import SPARKS

CODE = """
import sys

had = hasattr(sys.modules["__main__"], "__file__")
import ytstream.spark
from pyspark.sql import DataFrame

assert hasattr(DataFrame, "withYsonColumn")
assert hasattr(sys.modules["__main__"], "__file__") == had
print("imported")
"""
"""SPYT has extended Spark, and `__main__` is as it was."""


class Started(NamedTuple):
    """What a process is started with."""

    words: list[str]
    stdin: str = ""


def _notebook(_: Path) -> Started:
    """Its kernel puts a module without a file in the place of its own (IPython, user_module)."""
    own = "import sys, types\nsys.modules['__main__'] = types.ModuleType('__main__')\n"
    return Started(["-c", own + CODE])


def _package(folder: Path) -> Started:
    (folder / "package").mkdir()
    (folder / "package/__init__.py").write_text(CODE)
    (folder / "package/__main__.py").touch()
    return Started(["-m", "package"])


def _script(folder: Path) -> Started:
    (folder / "script.py").write_text(CODE)
    return Started(["script.py"])


def _pytest(folder: Path) -> Started:
    """Its workers are started so by execnet."""
    run = "import pytest, sys; sys.exit(pytest.main(['-s', '-q', '-p', 'no:cacheprovider']))"
    (folder / "test_it.py").write_text(f"{CODE}\n\ndef test_it():\n    pass\n")
    return Started(["-c", run])


WAYS: dict[str, Callable[[Path], Started]] = {
    "-c": lambda _: Started(["-c", CODE]),
    "stdin": lambda _: Started(["-"], CODE),
    "notebook": _notebook,
    "package": _package,
    "pytest": _pytest,
    "script": _script,
}


@pytest.mark.slow
@pytest.mark.parametrize("spark", SPARKS)
@pytest.mark.parametrize("grpcio", ["with", pytest.param("without", marks=pytest.mark.journey)])
@pytest.mark.parametrize("way", WAYS)
def test_spyt_is_imported(
    tmp_path: Path,
    environments: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    grpcio: str,
    spark: str,
) -> None:
    if grpcio == "without":
        (tmp_path / "grpc.py").write_text("raise ImportError('there is no grpcio')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    words, given = WAYS[way](tmp_path)
    python = environments[spark] / "bin/python"
    done = subprocess.run(
        [python, *words], input=given, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "imported\n" in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr
