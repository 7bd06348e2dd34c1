"""Answers that an organisation gives once: read from its configuration, kept by cruft, refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from local_extensions.answers import SETTINGS, dropped
from tests.support.project import OPTIONS, ROOT, user_config
from tests.support.upgrades import commit, cruft, git
from tests.template.test_upgrade import template

__all__ = ["template"]
DIGEST = f"registry.example.com/ci@sha256:{'0' * 64}"
ANSWERS = {
    "account": "analytics",
    "pool": "streaming",
    "proxy_role": "heavy",
    "ci_image": DIGEST,
    "package_index": "https://index.example.com/simple",
}


def configuration(folder: Path, **answers: object) -> Path:
    """Return the organisation's file; the home is left alone."""
    given = json.loads(user_config(folder).read_text())
    file = folder / "organisation.yaml"
    file.write_text(json.dumps({**given, "default_context": answers}))
    return file


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "out").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "cookiecutter", str(ROOT), "--no-input", "-o", "out", *words]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def production(project: Path) -> dict[str, object]:
    return tomllib.loads((project / "config/production.toml").read_text(encoding="utf-8"))


def test_they_are_public_and_no_question_asks_for_them() -> None:
    assert list(SETTINGS) == list(ANSWERS)
    assert not OPTIONS.keys() & SETTINGS.keys()
    assert not [name for name in SETTINGS if name.startswith("_")]


@pytest.mark.parametrize("by", ["--config-file", "COOKIECUTTER_CONFIG"])
def test_they_come_from_the_configuration(tmp_path: Path, by: str) -> None:
    file = str(configuration(tmp_path, **ANSWERS, ci="github"))
    words, environment = ((by, file), {}) if by.startswith("--") else ((), {by: file})
    done = run(tmp_path, *words, "pool=batch", **environment)
    assert done.returncode == 0, done.stderr
    project = tmp_path / "out/bids-stream"
    found = production(project)
    assert (found["account"], found["proxy_role"]) == ("analytics", "heavy")
    assert found["pool"] == "batch"  # the command line goes before
    checks = yaml.safe_load((project / ".github/workflows/ci.yml").read_text())["jobs"]["checks"]
    assert checks["container"] == DIGEST
    assert [step.get("run", "checkout") for step in checks["steps"]] == [
        "checkout",
        "make lint test",
    ]
    assert (
        f"export PIP_INDEX_URL ?= {ANSWERS['package_index']}\n"
        in (project / "Makefile").read_text()
    )


def test_gitlab_installs_nothing_into_an_image_of_its_own(tmp_path: Path) -> None:
    done = run(tmp_path, "--config-file", str(configuration(tmp_path, **ANSWERS)), "ci=gitlab")
    assert done.returncode == 0, done.stderr
    found = yaml.safe_load((tmp_path / "out/bids-stream/.gitlab-ci.yml").read_text())
    assert {job["image"] for job in found.values()} == {DIGEST}
    assert "before_script" not in found["checks"]


@pytest.mark.thorough
def test_without_them_the_project_leaves_them_to_its_user(tmp_path: Path) -> None:
    assert run(tmp_path, "--config-file", str(user_config(tmp_path))).returncode == 0
    project = tmp_path / "out/bids-stream"
    assert not production(project).keys() & ANSWERS.keys()
    assert "export PIP_INDEX_URL" not in (project / "Makefile").read_text()
    assert "container" not in (project / ".github/workflows/ci.yml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("account", "my team", 'account "my team" cannot be `account`'),
        ("pool", 5, "pool is not text"),
        ("pool", " ", "pool is empty"),
        ("proxy_role", "{{ 1 }}", "proxy_role"),
        ("ci_image", "python", "ci_image"),
        ("ci_image", "python:latest", "another tag than latest"),
        ("ci_image", 'x:1"\n  - run: evil', "ci_image cannot be"),
        ("package_index", "https://user:hushed@index.example.com/simple", "package_index cannot"),
        ("package_index", "https://index.example.com/simple?token=hushed", "package_index cannot"),
        ("package_index", "https://index.example.com/$(shell hushed)", "package_index cannot"),
    ],
)
def test_one_that_cannot_be_is_refused_by_name(
    tmp_path: Path, name: str, value: object, said: str
) -> None:
    done = run(tmp_path, "--config-file", str(configuration(tmp_path, **{name: value})))
    assert done.returncode == 1
    assert said in done.stderr
    assert "hushed" not in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_mistyped_one_is_refused_with_the_right_one(tmp_path: Path) -> None:
    done = run(tmp_path, "--config-file", str(user_config(tmp_path)), "acount=analytics")
    assert "acount is not an option. Did you mean account?" in done.stderr
    assert done.stderr.rstrip().endswith("account=analytics")


WRONG = {"license": "Apache Software License 2.0", "yt_proxy": "hume", "ci": "gitlab"}
"""With answers after it, which cookiecutter drops with a wrong choice."""


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "given", "said"),
    [
        ("--config-file", WRONG, 'license "Apache Software License 2.0" is not a choice. Give one'),
        ("COOKIECUTTER_CONFIG", WRONG, "would also drop the answers after it: yt_proxy, ci"),
        ("--config-file", {"spark_version": 4.1}, 'is not text. Write it in quotes: "4.1"'),
        ("--config-file", {"ci": ["jenkins"]}, "ci \"['jenkins']\" is not a choice"),
    ],
)
def test_a_choice_that_is_not_offered_is_refused_by_name(
    tmp_path: Path, by: str, given: dict[str, object], said: str
) -> None:
    file = str(configuration(tmp_path, **given))
    words, environment = ((by, file), {}) if by.startswith("--") else ((), {by: file})
    done = run(tmp_path, *words, **environment)
    assert done.returncode == 1
    assert said in done.stderr
    assert f"correct default_context of {file}" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.thorough
def test_a_configuration_that_loses_nothing_is_accepted(tmp_path: Path) -> None:
    """The command line, a replay and `cruft update` have the answers that are dropped."""
    answered = ("license=MIT", "ci=none", "yt_proxy=hume")
    done = run(tmp_path, "--config-file", str(configuration(tmp_path, **WRONG)), *answered)
    assert done.returncode == 0, done.stderr
    assert dropped(WRONG, {}) != []
    assert dropped(WRONG, dict.fromkeys(WRONG)) == []
    assert dropped({"other": 1, "license": "MIT", "ci": ["github", "none"]}, {}) == []


@pytest.mark.thorough
@pytest.mark.slow
def test_cruft_keeps_them_at_an_update(tmp_path: Path, template: Path) -> None:
    file = configuration(tmp_path, **ANSWERS)
    words = ("--no-input", "--config-file", str(file), "--extra-context", '{"pool": "batch"}')
    cruft(tmp_path, "create", str(template), *words)
    project = tmp_path / "bids-stream"
    stored = json.loads((project / ".cruft.json").read_text())["context"]["cookiecutter"]
    assert {name: stored[name] for name in ANSWERS} == {**ANSWERS, "pool": "batch"}
    commit(project, "generated")

    ignored = template / "{{cookiecutter.project_slug}}/.gitignore"
    ignored.write_text(ignored.read_text() + "/new/\n")
    git(template, "commit", "--quiet", "--all", "--message", "a change")
    # Without the organisation's file: .cruft.json has them.
    cruft(project, "update", "--skip-apply-ask")
    assert git_changed(project) == {".cruft.json", ".gitignore", "pyproject.toml"}
    commit(project, "updated")

    index = "https://other.example.com/simple"
    changed = json.dumps({"package_index": index})
    cruft(project, "update", "--skip-apply-ask", "--variables-to-update", changed)
    assert f"export PIP_INDEX_URL ?= {index}\n" in (project / "Makefile").read_text()
    assert git_changed(project) == {".cruft.json", "Makefile"}


def git_changed(project: Path) -> set[str]:
    words = ["git", "status", "--porcelain"]
    shown = subprocess.run(words, cwd=project, capture_output=True, text=True, check=True).stdout
    return {line[3:] for line in shown.splitlines()}
