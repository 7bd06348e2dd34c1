"""The commands that can run here, and the errors of those that cannot; no cluster."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import ytstream
from ytstream import cli
from ytstream.commands import registry as registries
from ytstream.commands.registry import OF_THE_RUNTIME, OF_THE_TOOLS, registry
from ytstream.errors import JobError


def test_the_runtime_knows_the_names_of_the_tools_commands() -> None:
    own = {command.name for command in OF_THE_RUNTIME}
    assert {*registry().commands} == own | {*OF_THE_TOOLS}
    assert not registry().missing


def test_each_command_runs_in_one_way() -> None:
    for command in registry().commands.values():
        if command.run is None and command.offline is None:
            assert command.without_cluster is not None, command.name
        else:
            assert (command.run is None) != (command.offline is None), command.name


def test_the_help_of_a_command_says_what_it_needs_and_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.run("bids", lambda: pytest.fail("imported"), ["rewind", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "No other process of the job may run. Changes the ledger, the consumer" in shown


def test_without_the_tools_help_says_which_package_has_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registries, "entry_points", lambda **_: ())
    with pytest.raises(SystemExit):
        cli.run("bids", lambda: pytest.fail("imported"), ["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert all(f" {command.name} " in shown for command in OF_THE_RUNTIME)
    assert "status, metrics" in shown
    assert "commands of the package ytstream-tools" in shown


def test_a_command_of_a_missing_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registries, "entry_points", lambda **_: ())
    assert cli.run("bids", lambda: pytest.fail("imported"), ["status"]) == 1
    said = capsys.readouterr().err
    assert "`status` cannot run: its package ytstream-tools is not installed here" in said
    assert "pip install 'ytstream-tools[testing]==" in said


def test_a_broken_package_hides_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("tools", "no_such_module:COMMANDS", registries.GROUP)
    monkeypatch.setattr(registries, "entry_points", lambda **_: (broken,))
    found = registry()
    assert {*found.missing} == {*OF_THE_TOOLS}
    with pytest.raises(JobError, match="cannot be imported: No module named 'no_such_module'"):
        found.verify("status")


def test_no_module_imports_what_a_cluster_does_not_have() -> None:
    known = {*sys.stdlib_module_names, "ytstream", "pyspark", "py4j", "spyt", "yt"}
    folder = Path(str(ytstream.__file__)).parent
    others = {
        (str(file.relative_to(folder)), name)
        for file in folder.rglob("*.py")
        for name in _imported(ast.parse(file.read_text(encoding="utf-8")))
        if name not in known
    }
    # Whoever writes a pandas function has both: PySpark's own functions import them.
    own = "connector/python_functions.py"
    assert others <= {(own, "pandas"), (own, "pyarrow")}


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the packages that a module imports, but for those of `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]
        yield from _imported(node)


@pytest.mark.slow
def test_every_module_imports_without_the_packages_of_a_laptop() -> None:
    """A cluster has what ytstream requires, and nothing else."""
    program = """
import importlib, pkgutil, sys
import ytstream
from ytstream.commands.registry import LAPTOP_PACKAGES
sys.modules.update(dict.fromkeys(LAPTOP_PACKAGES))
for module in pkgutil.walk_packages(ytstream.__path__, "ytstream."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("all")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(str(ytstream.__file__)).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "all\n", done.stderr
