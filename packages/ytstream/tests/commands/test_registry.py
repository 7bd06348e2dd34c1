"""The commands that can run here, and the errors of those that cannot; no cluster."""

from __future__ import annotations

import os
import subprocess
import sys
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
        assert (command.run is None) != (command.offline is None), command.name


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


@pytest.mark.slow
def test_every_module_imports_without_the_packages_of_a_laptop() -> None:
    """And imports none of them: a cluster has what ytstream requires, and nothing else."""
    program = """
import importlib, pkgutil, sys
away = ("ytstream_tools", "ytstream_doctor", "minicluster", "rich", "pytest", "prometheus_client")
sys.modules.update(dict.fromkeys(away))
import ytstream
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
