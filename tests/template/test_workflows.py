"""What CI services run, here and in generated projects: by commit, with little permission."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_extensions import versions
from tests.conftest import Generate
from tests.support.project import ROOT
from tools import audit, real
from ytstream import cli
from ytstream_tools.replay.rehearsal import DIFFERS

OURS = ROOT / ".github/workflows/ci.yml"
REAL = ROOT / ".github/workflows/real.yml"
WEEKLY = ROOT / ".github/workflows/weekly.yml"
PAGES = ROOT / ".github/workflows/pages.yml"
ZIZMOR, JACTIONLINT = (ROOT / ".venv-tools/bin" / name for name in ("zizmor", "jactionlint"))
_USES = re.compile(r"uses: (\S+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$", re.MULTILINE)


@pytest.fixture(params=["ours", "real", "weekly", "ci.yml", "release.yml"])
def workflow(request: pytest.FixtureRequest, generate: Generate) -> str:
    """The text of a workflow."""
    ours, name = {"ours": OURS, "real": REAL, "weekly": WEEKLY}, request.param
    made = ours[name] if name in ours else generate(ci="github") / ".github/workflows" / name
    return made.read_text(encoding="utf-8")


def _check_actions(workflow: str) -> None:
    found = _USES.findall(workflow)
    assert len(found) == workflow.count("uses:") > 0
    for name, commit, tag in found:
        pin = versions._entry(name, "")
        assert (commit, tag) == (pin.version, pin.tag), f"{name}: see local_extensions/versions.py"


def test_every_action_is_the_commit_of_the_one_list(workflow: str) -> None:
    _check_actions(workflow)


@pytest.mark.parametrize("page", ["hooks/post_gen_project.py", "docs/tutorial.md"])
def test_ci_runs_on_the_branch_that_the_printed_command_makes(
    generate: Generate, tmp_path: Path, page: str
) -> None:
    (command,) = re.findall(r"git init[^&\n]*", (ROOT / page).read_text(encoding="utf-8"))
    default = "master"  # git's own until version 3
    words = ["git", "-c", f"init.defaultBranch={default}", *command.split()[1:]]
    subprocess.run(words, cwd=tmp_path, check=True)
    branch = (tmp_path / ".git/HEAD").read_text().strip().removeprefix("ref: refs/heads/")
    ci = yaml.safe_load((generate(ci="github") / ".github/workflows/ci.yml").read_text())
    assert branch in ci[True]["push"]["branches"]  # YAML 1.1 takes "on" for a boolean


def test_the_job_that_publishes_the_site_runs_nothing_of_the_repository() -> None:
    text = PAGES.read_text(encoding="utf-8")
    _check_actions(text)
    described: dict[str, Any] = yaml.safe_load(text)
    assert described["permissions"] == {}
    build, deploy = (described["jobs"][name] for name in ("build", "deploy"))
    assert build["permissions"] == {"contents": "read"}
    assert build["steps"][0]["with"]["persist-credentials"] is False
    assert [step["run"] for step in build["steps"] if "run" in step] == ["make site"]
    assert deploy["permissions"] == {"pages": "write", "id-token": "write"}
    assert deploy["environment"]["name"] == "github-pages"
    (step,) = deploy["steps"]
    assert step["uses"].startswith("actions/deploy-pages@")


def test_a_job_may_read_the_repository_and_nothing_else(workflow: str) -> None:
    described: dict[str, Any] = yaml.safe_load(workflow)
    assert described["permissions"] == {}
    for name, job in described["jobs"].items():
        # An issue is opened by a job of its own, which runs nothing of a pull request.
        issues = {"issues": "write"} if name == "issue" else {}
        assert job["permissions"] == {"contents": "read", **issues}
        (checkout,) = (s for s in job["steps"] if s.get("uses", "").startswith("actions/checkout"))
        assert checkout["with"]["persist-credentials"] is False
        assert job["timeout-minutes"] <= (350 if described["name"] == "weekly" else 120)
    # The token is given to two steps of the release alone, whose environment guards it.
    is_release = described["name"] == "release"
    assert re.findall(r"secrets\.\w+", workflow) == ["secrets.YT_TOKEN"] * 2 * is_release
    assert ("environment" in described["jobs"].get("release", {})) == is_release


@pytest.mark.parametrize("ci", ["github", "gitlab", "none"])
def test_a_release_is_by_hand_or_by_a_tag_and_calls_what_a_person_calls(
    generate: Generate, ci: str
) -> None:
    project = generate(ci=ci)
    steps = ["make setup", "make check CONFIG=config/production.toml", "make submit REPLACE=1"]
    file = project / ".github/workflows/release.yml"
    assert file.is_file() == (ci == "github")
    if ci == "github":
        described: dict[Any, Any] = yaml.safe_load(file.read_text())
        assert described[True].keys() == {"push", "workflow_dispatch"}  # YAML's `on`
        assert described[True]["push"] == {"tags": ["v*"]}
        assert described["concurrency"]["cancel-in-progress"] is False
        (job,) = described["jobs"].values()
        assert [step["run"] for step in job["steps"] if "run" in step] == steps
    if ci == "gitlab":
        job = yaml.safe_load((project / ".gitlab-ci.yml").read_text())["release"]
        assert job["script"] == steps
        assert job["rules"][0] == {"if": "$CI_COMMIT_TAG =~ /^v/"}
        assert [rule.get("when") for rule in job["rules"]] == [None, "manual"]
        assert job["resource_group"] == job["environment"] == "production"


REHEARSAL = (ROOT / "docs/rehearse.md").read_text(encoding="utf-8")
REHEARSAL_BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", REHEARSAL, re.MULTILINE | re.DOTALL)


def test_the_rehearsal_of_the_page_fits_into_a_projects_workflow(generate: Generate) -> None:
    block = REHEARSAL_BLOCKS[0]
    text = (generate(ci="github") / ".github/workflows/ci.yml").read_text()
    first, line, rest = text.partition("\n  # Has the template a newer version?")
    described: dict[str, Any] = yaml.safe_load(f"{first}\n{block}{line}{rest}")
    assert described["jobs"].keys() == {"checks", "rehearse", "template"}
    job = described["jobs"]["rehearse"]
    assert job["permissions"] == {"contents": "read"}
    checkout, setup, run = job["steps"]
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}
    (used,) = _USES.findall(block)
    assert used in _USES.findall(text)
    assert setup == {"run": "make setup"}
    assert run["env"] == {"YT_TOKEN": "${{ secrets.YT_REHEARSAL_TOKEN }}"}
    _is_a_rehearsal(run["run"])


def test_the_rehearsal_of_the_page_fits_into_a_projects_pipeline(generate: Generate) -> None:
    text = (generate(ci="gitlab") / ".gitlab-ci.yml").read_text()
    described = yaml.safe_load(f"{text}\n{REHEARSAL_BLOCKS[1]}")
    job = described["rehearse"]
    assert "image" in described[job["extends"]]
    assert job["variables"] == {"GIT_DEPTH": 0, "YT_TOKEN": "$YT_REHEARSAL_TOKEN"}
    assert job["allow_failure"] == {"exit_codes": DIFFERS}
    setup, run = job["script"]
    assert setup == "make setup"
    _is_a_rehearsal(run)


def _is_a_rehearsal(line: str) -> None:
    words = line.removeprefix(".venv/bin/python -m <package> ").split()
    given = cli.parser("bids").parse_args(words)
    assert (given.command, given.batches, given.commit) == ("rehearse", 5, None)
    assert given.config == Path("config/production.toml")


def test_ours_calls_what_a_person_calls() -> None:
    jobs = yaml.safe_load(OURS.read_text())["jobs"].values()
    runs = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    assert runs == ["make lint audit site", ".ci/run"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{word}: " in makefile for word in runs[0].split()[1:])


def test_the_real_server_is_tried_weekly_by_hand_and_where_it_is_spoken_to() -> None:
    described: dict[Any, Any] = yaml.safe_load(REAL.read_text())
    on = described[True]  # YAML's `on`
    assert on.keys() == {"schedule", "workflow_dispatch", "pull_request"}
    for path in on["pull_request"]["paths"]:
        assert [*ROOT.glob(path.removesuffix("/**"))], path
    run, issue = described["jobs"].values()
    steps = [step["run"] for step in (*run["steps"], *issue["steps"]) if "run" in step]
    assert steps == ["make real", ".ci/report", ".ci/issue"]
    assert all(os.access(ROOT / step, os.X_OK) for step in steps[1:])
    assert "github.event_name != 'pull_request'" in issue["if"]


def test_each_week_everything_runs_that_make_test_leaves_out() -> None:
    described: dict[Any, Any] = yaml.safe_load(WEEKLY.read_text())
    assert described[True].keys() == {"schedule", "workflow_dispatch"}
    (job,) = described["jobs"].values()
    targets = job["strategy"]["matrix"]["target"]
    makefile = (ROOT / "Makefile").read_text()
    (parts,) = re.findall(r"^test-all: (.*) ##", makefile, re.MULTILINE)
    assert {*parts.split(), "proof SAMPLE=200"} <= {*targets}
    for target in targets:
        name, *options = target.split()
        assert f"\n{name}: " in makefile
        assert all(f"\n{option.partition('=')[0]} ?=" in makefile for option in options)
    *_, last = job["steps"]
    assert (last["run"], last["env"]) == ("make $TARGET", {"TARGET": "${{ matrix.target }}"})


def test_the_report_is_an_artifact_of_each_run() -> None:
    described: dict[Any, Any] = yaml.safe_load(REAL.read_text())
    *_, report, upload = described["jobs"]["real"]["steps"]
    assert upload["uses"].startswith("actions/upload-artifact@")
    assert report["if"] == upload["if"] == "always()"
    written = real.parser().parse_args([]).report
    assert ROOT / upload["with"]["path"] == written


@pytest.mark.parametrize("file", [OURS, REAL, WEEKLY], ids=lambda file: file.stem)
def test_the_versions_of_python_and_java_are_those_of_the_one_list(file: Path) -> None:
    text = file.read_text()
    assert {*re.findall(r'python-version: "(.*)"', text)} == {versions.pin("python")}
    assert {*re.findall(r'java-version: "(.*)"', text)} == {versions.pin("java")}
    assert {*re.findall(r"runs-on: (.*)", text)} == {versions.pin("runner")}


def test_the_bot_finds_every_pin() -> None:
    managers = json.loads((ROOT / "renovate.json").read_text())["customManagers"]
    text = (ROOT / "local_extensions/versions.py").read_text()
    found = [
        match["depName"]
        for manager in managers
        for expression in manager["matchStrings"]
        # The bot's expressions are ECMAScript's: a group has no P.
        for match in re.finditer(expression.replace("(?<", "(?P<"), text)
    ]
    by_hand = {"runner", "python", "java", "image"}
    assert found == [pin.name for pin in versions.PINS if pin.name not in by_hand]


@pytest.mark.parametrize("ci", ["github", "gitlab", "none"])
def test_a_project_has_the_bot_of_its_service(generate: Generate, ci: str) -> None:
    project = generate(ci=ci)
    assert (project / ".github/dependabot.yml").is_file() == (ci == "github")
    assert (project / "renovate.json").is_file() == (ci == "gitlab")
    if ci == "github":
        (update,) = yaml.safe_load((project / ".github/dependabot.yml").read_text())["updates"]
        assert update["package-ecosystem"] == "github-actions"
    if ci == "gitlab":
        assert json.loads((project / "renovate.json").read_text())["enabledManagers"] == [
            "gitlabci"
        ]


@pytest.mark.slow
def test_nothing_is_found_here_and_in_generated_projects() -> None:
    assert ZIZMOR.is_file(), "call `make installed-tools`"
    assert audit.main(str(ZIZMOR), str(JACTIONLINT)) == 0


@pytest.mark.parametrize(("zizmor", "jactionlint"), [("true", "false"), ("false", "true")])
def test_a_finding_of_one_of_both_is_one(zizmor: str, jactionlint: str) -> None:
    assert audit.main(zizmor, jactionlint) == 1


def test_each_workflow_and_the_settings_of_dependabot_are_linted(generate: Generate) -> None:
    assert audit.files(ROOT) == sorted(ROOT.glob(".github/workflows/*"))
    made = audit.files(generate(ci="github"))
    assert [file.name for file in made] == ["dependabot.yml", "ci.yml", "release.yml"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("        with:\n          persist-credentials: false\n", "", "artipacked"),
        (f"@{versions.pin('actions/checkout')}", "@v7", "unpinned-uses"),
        ("permissions: {}", "permissions: write-all", "excessive-permissions"),
    ],
)
def test_zizmor_finds_a_planted_fault(generate: Generate, old: str, new: str, rule: str) -> None:
    done = _audited(generate, [str(ZIZMOR), *audit.WORDS], old, new)
    assert done.returncode != 0
    assert f"[{rule}]" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("  pull_request:\n", "  pull_requests:\n", "unknown-event"),
        ("timeout-minutes: 30", "timeout-minute: 30", "workflow-syntax"),
        ("${{ github.workflow }}", "${{ github.workflows }}", "undefined-property"),
        ("          python-version:", "          pythonversion:", "unknown-action-input"),
        ('cron: "17 6 * * 1"', 'cron: "17 6 * * 8"', "invalid-cron"),
    ],
)
def test_jactionlint_finds_a_planted_fault(
    generate: Generate, old: str, new: str, rule: str
) -> None:
    done = _audited(generate, [str(JACTIONLINT), *audit.LINT_WORDS], old, new)
    assert done.returncode == 1
    assert f"[{rule}]" in done.stdout


def _audited(
    generate: Generate, words: Sequence[str], old: str, new: str
) -> subprocess.CompletedProcess[str]:
    """Plant a fault in a generated workflow, and audit it."""
    file = generate(ci="github") / ".github/workflows/ci.yml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return subprocess.run([*words, str(file)], capture_output=True, text=True, check=False)
