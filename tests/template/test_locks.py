"""The locked packages: they are those of versions.py with all that these require, and hashes."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from local_extensions import locks, versions
from local_extensions.locks import FOLDER, cut
from local_extensions.versions import SPARK
from tests.conftest import Generate
from tests.support.sparks import OLDEST
from tools.locks import index as index_of_pip

REFRESH = "call `make locks`"
SCOPES_OF_SPARKS = [
    pytest.param(lock.spark, scope, marks=[pytest.mark.other_spark] * (lock.spark != SPARK))
    for lock in versions.LOCKS.values()
    if lock.spark
    for scope in versions.SCOPES[1 : versions.SCOPES.index(lock.scope) + 1]
]
"""Each part of each lock; the environment of a Spark that is not the default needs a marker."""
PYTHONS = ("3.11", "3.12", "3.13")
"""The machines that the locks are for, as markers see them."""
MACHINES = (
    ("linux", "Linux", "x86_64"),
    ("linux", "Linux", "aarch64"),
    ("darwin", "Darwin", "x86_64"),
    ("darwin", "Darwin", "arm64"),
)


def entries(text: str) -> list[Requirement]:
    """Return the requirements of a lock, in its order; each has its hashes."""
    found = []
    for entry in re.findall(r"^\w(?:.*\\\n)*.*", text, re.MULTILINE):
        requirement, *hashes = entry.split(" \\\n")
        assert hashes, requirement
        for line in hashes:
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line), line
        found.append(Requirement(requirement))
    return found


@pytest.fixture(params=versions.LOCKS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def locked(name: str) -> list[Requirement]:
    return entries((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))


def on(python: str, machine: tuple[str, str, str]) -> dict[str, str]:
    """Return the values of markers on a machine."""
    names = ("sys_platform", "platform_system", "platform_machine")
    return {
        **{key: str(value) for key, value in default_environment().items()},
        **dict(zip(names, machine, strict=True)),
        "python_version": python,
        "python_full_version": f"{python}.1",
        "extra": "",
    }


def applying(requirements: list[Requirement], where: dict[str, str]) -> dict[str, str]:
    """Return the version of each package that is installed there; none is listed twice."""
    there = [one for one in requirements if not one.marker or one.marker.evaluate(where)]
    found = {str(canonicalize_name(one.name)): str(one.specifier) for one in there}
    assert len(found) == len(there)
    return found


@pytest.mark.parametrize("machine", MACHINES, ids="-".join)
@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_has_the_pins_where_their_markers_say(
    name: str, python: str, machine: tuple[str, str, str]
) -> None:
    lock, where = versions.LOCKS[name], on(python, machine)
    pinned = [*map(Requirement, versions.requirements(lock.scope, lock.spark))]
    pins, found = applying(pinned, where), applying(locked(name), where)
    for package in {canonicalize_name(one.name) for one in pinned}:
        assert found.get(package) == pins.get(package), (package, REFRESH)


def test_a_lock_has_no_other_line_and_no_host(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    lines = re.findall(r"^(?!#|\w\S*==\S+ .*\\$|    --hash=sha256:\w+(?: \\)?$).*\n", text, re.M)
    assert lines == []
    assert "/" not in text


@pytest.mark.parametrize(
    ("given", "index"),
    [
        ({}, "https://pip:secret@index.example.com/simple"),
        ({"PIP_INDEX_URL": "https://a.example.com"}, "https://a.example.com"),
        ({"UV_DEFAULT_INDEX": "https://b.example.com"}, None),
        ({"PIP_CONFIG_FILE": os.devnull}, None),
    ],
)
def test_uv_asks_the_index_of_pip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: dict[str, str], index: str | None
) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://pip:secret@index.example.com/simple\n")
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"PIP_CONFIG_FILE": str(config), **given}.items():
        monkeypatch.setenv(name, value)
    assert index_of_pip().get("UV_DEFAULT_INDEX") == index


def test_there_is_a_lock_for_every_spark_and_no_other() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {*versions.LOCKS}


@pytest.mark.parametrize("spark", versions.SPARK_VERSIONS)
@pytest.mark.parametrize(("processing", "scope"), [("map", "dev"), ("sessions", "sessions")])
def test_a_project_gets_the_part_of_its_scope(
    generate: Generate, spark: str, processing: str, scope: str
) -> None:
    project = generate(spark_version=spark, processing=processing)
    text = (project / "requirements.txt").read_text(encoding="utf-8")
    assert text == cut((FOLDER / f"spark-{spark}.txt").read_text(encoding="utf-8"), scope)
    names = [canonicalize_name(entry.name) for entry in entries(text)]
    assert names == sorted(names)  # as uv writes them: `make lock` there changes no other line
    assert "# Scope" not in text


@pytest.mark.parametrize(("spark", "scope"), SCOPES_OF_SPARKS)
def test_a_scope_is_what_is_installed_and_all_that_it_requires(
    environments: dict[str, Path], spark: str, scope: str
) -> None:
    text = cut((FOLDER / f"spark-{spark}.txt").read_text(encoding="utf-8"), scope)
    wanted = applying(entries(text), {**on("3.11", MACHINES[0]), **_here()})
    (packages,) = environments[spark].glob("lib/python3.*/site-packages")
    installed = {
        str(canonicalize_name(found.name)): found
        for found in importlib.metadata.distributions(path=[str(packages)])
    }
    for package, specifier in wanted.items():
        assert f"=={installed[package].version}" == specifier, (package, "call `make setup`")
        for line in installed[package].requires or []:
            required = Requirement(line)
            if not required.marker or required.marker.evaluate({**_here(), "extra": ""}):
                assert canonicalize_name(required.name) in wanted, (package, line)


def _here() -> dict[str, str]:
    return {key: str(value) for key, value in default_environment().items()}


@pytest.mark.other_spark
def test_the_size_that_is_said_is_the_one_of_an_environment(environments: dict[str, Path]) -> None:
    said = locks.megabytes("sessions", OLDEST)
    shown = subprocess.run(
        ["du", "-sm", f"{environments[OLDEST]}/."], capture_output=True, text=True, check=True
    ).stdout
    # pip compiles what it installs, uv does not: a tenth less.
    assert int(shown.split()[0]) == pytest.approx(said, rel=0.15)


def test_reviews_show_what_a_command_made_folded(generate: Generate) -> None:
    project = generate()
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    names = ["requirements.txt", "vendor/SHA256SUMS", "vendor/x-1-py3-none-any.whl", "main.py"]
    words = ["git", "check-attr", "linguist-generated", "gitlab-generated", "binary", "--", *names]
    shown = subprocess.run(words, cwd=project, capture_output=True, text=True, check=True).stdout
    values = dict(line.rsplit(": ", 1) for line in shown.splitlines())
    for name in names:
        made = "set" if name != "main.py" else "unspecified"
        assert values[f"{name}: linguist-generated"] == made
        assert values[f"{name}: gitlab-generated"] == made
        assert (values[f"{name}: binary"] == "set") is name.endswith(".whl")
