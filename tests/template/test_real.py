"""`make real` with a stand-in for Docker that starts a minicluster: steps, report, exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import yaml

from minicluster import testing
from tests.conftest import Generate
from tests.faults.operations.job_site import submit_part
from tests.support import docker_stand_in
from tests.support.project import ROOT
from tools import conformance, real, real_report
from tools.real_report import Change, Outcome, Report, StepResult
from ytstream.errors import JobError
from ytstream.settings.job_settings import load
from ytstream_tools.real import container, readiness, session
from ytstream_tools.real.image import IMAGE

CASE = "test_queues.py::test_a_partition_must_exist"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the containers of a `docker` on the PATH."""
    folder = tmp_path / "state"
    for name, value in docker_stand_in.installed(tmp_path / "bin", folder).items():
        monkeypatch.setenv(name, value)
    return folder


def _words(folder: Path, *more: str) -> list[str]:
    return ["--report", str(folder / "report"), "--issue", str(folder / "issue.md"), *more]


def _called(*words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.real", *words],
        cwd=ROOT,
        env={**os.environ, **({"PATH": path} if path is not None else {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


# The whole script


@pytest.mark.thorough
@pytest.mark.slow
def test_a_run_asks_the_server_reports_and_removes_the_container(
    tmp_path: Path, state: Path
) -> None:
    steps = ["--steps", "conformance", "test-cluster"]
    done = _called(*_words(tmp_path, "--only", CASE, *steps))
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "report" / "REPORT.md").read_text()
    assert f"YTsaurus minicluster in `{docker_stand_in.DIGEST}`" in page
    # Over HTTP and over RPC: the native client, too, finds the server by the name localhost.
    assert re.search(r"^\| conformance \| done \| \d+ \| 2 cases agree, 0 differ \|$", page, re.M)
    assert re.search(
        r"^\| test-cluster \| skipped \| \d+ \| the server has no SPYT \|$", page, re.M
    )
    assert json.loads((tmp_path / "report" / "answers.json").read_text())["differing"] == {}
    assert not (tmp_path / "issue.md").exists()
    assert docker_stand_in.containers(state) == []
    said = [words[0] for words in docker_stand_in.calls(state) if words[0] != "inspect"]
    assert said == ["pull", "run", "image", "rm"]


@pytest.mark.thorough
@pytest.mark.slow
def test_a_step_that_fails_gives_exit_code_1_and_an_issue(tmp_path: Path, state: Path) -> None:
    words = _words(
        tmp_path, "--only", "test_queues.py::test_none", "--steps", "conformance", "test-cluster"
    )
    assert real.run(words) == 1
    page = (tmp_path / "report" / "REPORT.md").read_text()
    assert re.search(r"^\| conformance \| failed \|", page, re.M)
    assert "not found" in page
    assert "| test-cluster | skipped |" in page
    assert not (tmp_path / "report" / "answers.json").exists()
    assert (tmp_path / "issue.md").read_text() == "The step `conformance` failed.\n"
    assert docker_stand_in.containers(state) == []


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_container(
    tmp_path: Path, state: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.real", *_words(tmp_path, "--steps", "conformance")],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("== conformance"):
            break
    (name,) = docker_stand_in.containers(state)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == "interrupted: the container is removed\n"
    assert docker_stand_in.containers(state) == []
    assert docker_stand_in.calls(state)[-1] == ["rm", "--force", "--volumes", name]
    assert not (tmp_path / "report").exists()


@pytest.mark.thorough
@pytest.mark.slow
def test_an_interrupt_of_a_start_leaves_no_container(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(docker_stand_in.GATE, str(gate := tmp_path / "gate"))
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.real", *_words(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "run" not in [words[0] for words in docker_stand_in.calls(state)]:
        assert process.poll() is None
        time.sleep(0.05)  # another process writes the file
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):  # Docker would start the container in any case
        process.wait(3)
    gate.touch()
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "interrupted: the container is removed\n")
    assert docker_stand_in.containers(state) == []
    assert [words[0] for words in docker_stand_in.calls(state)] == ["pull", "run", "rm"]


@pytest.mark.thorough
def test_without_docker_one_line_says_how_to_name_a_cluster(tmp_path: Path) -> None:
    done = _called(*_words(tmp_path), path=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error [not_installed]: Docker is not installed here: there is no `docker` on the PATH\n"
        "  -> install it, or name a cluster: make real PROXY=HOST, with its token in YT_TOKEN\n"
    )
    assert not (tmp_path / "report").exists()


@pytest.mark.thorough
@pytest.mark.slow
def test_an_answer_that_differs_is_in_the_report_and_changes_the_exit_code(tmp_path: Path) -> None:
    case = f"{CASE}[http]"
    words = _words(tmp_path, "--only", case, "--steps", "conformance")
    with testing.start(rpc_proxies=1) as cluster:
        cluster.client.faults.add(
            method="pull_queue",
            action="fail",
            error={"code": 1, "message": "another answer"},
            times=None,
        )
        assert real.run([*words, "--proxy", cluster.http]) == real.CHANGED
    page = (tmp_path / "report" / "REPORT.md").read_text()
    assert f"### {case}" in page
    assert "another answer" in page.partition("The server:")[2].partition("minicluster")[0]
    assert "The minicluster answers as the case expects." in page
    assert f"- `{case}` differs now" in page
    assert "another answer" in (tmp_path / "issue.md").read_text()
    assert "another answer" in real_report.former(tmp_path / "report")[case]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize("guarantee", real.GUARANTEES)
def test_a_generated_job_is_killed_submitted_and_counted(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    """With SPYT's jobs as processes; `make test-cluster` takes one of the jobs once more."""
    monkeypatch.setenv(docker_stand_in.OPERATIONS, "1")
    (settings := tmp_path / "keys.toml").write_text(submit_part())
    steps = {"transactional": ["transactional", "test-cluster"]}.get(guarantee, [guarantee])
    done = _called(*_words(tmp_path, "--settings", str(settings), "--steps", *steps))
    assert done.returncode == 0, done.stdout
    page = (tmp_path / "report" / "REPORT.md").read_text()
    repeated = r"\d+" if guarantee == "at_least_once" else "0"
    counts = rf"guarantee={guarantee} .* lost=0 duplicated={repeated}"
    assert re.search(rf"^RESULT {counts} kills=3", page, re.M)
    assert re.search(rf"^SUBMIT {counts}$", page, re.M)
    assert ("0 differences from the minicluster" in page) == ("test-cluster" in steps)
    assert docker_stand_in.containers(state) == []


# The container


def test_a_container_that_cannot_be_started_is_an_error_with_dockers_reason(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(docker_stand_in.FAILS, "run")
    with (
        pytest.raises(JobError, match="125: docker: run cannot be done"),
        container.started(IMAGE, print),
    ):
        pass
    assert [words[0] for words in docker_stand_in.calls(state)] == ["pull", "run", "rm"]


def test_an_image_that_cannot_be_pulled_may_be_here(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(docker_stand_in.FAILS, "pull")
    with container.started(IMAGE, print) as server:
        assert server.image == docker_stand_in.DIGEST
    assert docker_stand_in.containers(state) == []


def test_a_server_that_has_ended_is_not_waited_for(state: Path) -> None:
    with container.started(IMAGE, print) as server:
        (name,) = docker_stand_in.containers(state)
        os.kill(int((state / f"{name}.pid").read_text()), signal.SIGKILL)
        with pytest.raises(JobError, match=f"the container {name} has ended"):
            _wait_until_ended(server)
    assert docker_stand_in.containers(state) == []


def _wait_until_ended(server: container.Server) -> None:
    readiness.wait(server.proxy, "any", "//tmp", print, server.verify)
    while True:  # it was ready before the signal came
        server.verify()
        time.sleep(0.1)


def test_a_server_that_lacks_something_is_named_after_a_while() -> None:
    with testing.start(rpc_proxies=0) as cluster:
        with pytest.raises(JobError, match="it lacks an RPC proxy: no RPC proxy is there"):
            readiness.wait(cluster.http, "any", "//tmp", print, patience=0)
        assert cluster.client.journal("create") == []


@pytest.mark.thorough
def test_the_token_of_another_cluster_does_not_reach_the_container(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YT_TOKEN", "of-production")
    with session.server("", IMAGE, "//tmp", print) as server:
        assert session.token_for(server.proxy) != "of-production"
    assert all(
        "of-production" not in word for words in docker_stand_in.calls(state) for word in words
    )


def test_the_last_port_counts_and_is_the_same_inside(state: Path) -> None:
    with container.started(IMAGE, print) as server:
        port = server.proxy.rpartition(":")[2]
    run = next(words for words in docker_stand_in.calls(state) if words[0] == "run")
    assert f"--publish=127.0.0.1:{port}:{port}" in run
    assert run[run.index(IMAGE) + 1 :] == container.arguments(
        run[run.index("--name") + 1], int(port), int(run[run.index("--rpc-proxy-port") + 1])
    )


# The report


def _report(**differing: str) -> Report:
    found = {case: (answer, "") for case, answer in differing.items()}
    step = StepResult(Outcome.DONE, (), "", found)
    return Report("25.4", "", "2026-11-28", {"conformance": (1.0, step)})


def test_what_has_changed_is_told() -> None:
    before = {"same": "a", "gone": "b", "other": "c"}
    assert _report(same="a", other="d", new="e").changes(before) == [
        Change("new", "differs now", "e"),
        Change("gone", "agrees now", ""),
        Change("other", "answers otherwise", "c\n  now:\nd"),
    ]
    assert Report("25.4", "", "2026-11-28", {}).changes(before) == []


def test_an_answer_is_news_once(tmp_path: Path) -> None:
    issue = tmp_path / "issue.md"
    codes = [
        real._written(_report(**differing), tmp_path, issue)
        for differing in ({"x": "a"}, {"x": "a"}, {"x": "b"}, {}, {})
    ]
    assert codes == [real.CHANGED, 0, real.CHANGED, real.CHANGED, 0]
    assert not issue.exists()


def test_an_answer_is_told_without_what_differs_from_run_to_run() -> None:
    answers = [
        f"Object {a}-{b}-12c-{c} in //tmp/{d} at localhost:{port}, 2026-11-2{day}T10:00:00.1Z"
        for a, b, c, d, port, day in (("1a", "2b", "3", "0" * 32, 40001, 1),
                                      ("5", "c", "9d", "f" * 32, 52345, 8))
    ]  # fmt: skip
    assert len({*map(conformance.plain, answers)}) == 1
    assert conformance.plain("assert 2 == 3") == "assert 2 == 3"
    assert conformance.plain("got: 'no\\n\\n***** Details:\\n host x'") == "got: 'no"


def test_an_issue_quotes_what_the_server_has_said_as_code() -> None:
    text = real_report.issue(["idempotent"], [Change("test_x.py::test_y", "differs now", "a\n@b")])
    assert text == (
        "The step `idempotent` failed.\n\n`test_x.py::test_y` differs now\n\n    a\n    @b"
    )


def test_an_issue_is_no_longer_than_github_takes() -> None:
    many = [Change(f"test_x.py::test_{number}", "differs now", "a" * 500) for number in range(999)]
    text = real_report.issue([], many)
    assert len(text) < 65_000
    assert text.endswith("999 answers have changed in all: the report has the others.")
    assert "`test_x.py::test_0` differs now" in text


# The image, and the recipe that names it as well


def test_the_bot_finds_the_image_and_adds_a_digest() -> None:
    managers = json.loads((ROOT / "renovate.json").read_text())["customManagers"]
    (manager,) = [one for one in managers if one["datasourceTemplate"] == "docker"]
    (name,) = manager["managerFilePatterns"]
    (pattern,) = manager["matchStrings"]
    text = (ROOT / name).read_text()
    expression = re.compile(pattern.replace("(?<", "(?P<"))
    (found,) = expression.finditer(text)
    assert f"{found['depName']}:{found['currentValue']}" == IMAGE
    pinned = text.replace(IMAGE, f"{IMAGE}@sha256:{'1' * 64}")
    (found,) = expression.finditer(pinned)
    assert found["currentDigest"] == f"sha256:{'1' * 64}"


RECIPE = (ROOT / "docs/howto.md").read_text(encoding="utf-8").partition("## Develop against")[2]


def test_the_recipe_starts_the_same_server() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", RECIPE, re.MULTILINE | re.DOTALL)
    service = yaml.safe_load(text)["services"]["ytsaurus"]
    assert (service["image"], service["platform"]) == (IMAGE, container.PLATFORM)
    assert service["environment"] == container.ENVIRONMENT
    words = [word for option in service["command"] for word in option.split("=", 1)]
    assert words == container.arguments("ytsaurus", 8010, 8011)
    assert service["ports"] == [f"127.0.0.1:{port}:{port}" for port in (8010, 8011)]


def test_the_configuration_of_the_recipe_is_one_of_a_project(generate: Generate) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", RECIPE, re.MULTILINE | re.DOTALL)
    project = generate()
    (file := project / "config" / "docker.toml").write_text(text)
    settings = load(file, {})
    assert settings.proxy == "localhost:8010"
    assert settings.create_queues
    assert tomllib.loads(text).keys() == {"extends", "proxy"}


# What the workflow calls


def _workflow(tmp_path: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / ".ci").mkdir(exist_ok=True)
    shutil.copy(ROOT / ".ci" / script, tmp_path / ".ci")
    return subprocess.run(
        [tmp_path / ".ci" / script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_report_is_shown_and_an_issue_handed_on(tmp_path: Path) -> None:
    summary, output = tmp_path / "summary", tmp_path / "output"
    files = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output)}
    (tmp_path / "docs/real").mkdir(parents=True)
    (tmp_path / "docs/real/REPORT.md").write_text("# A run\n")
    assert _workflow(tmp_path, "report", **files).returncode == 0
    assert summary.read_text() == "# A run\n"
    assert not output.exists()
    (tmp_path / "build/real").mkdir(parents=True)
    (tmp_path / "build/real/issue.md").write_text("a\nissue<<x\n")
    assert _workflow(tmp_path, "report", **files).returncode == 0
    begin, *text, end = output.read_text().splitlines()
    assert (begin, text) == (f"issue<<{end}", ["a", "issue<<x"])


@pytest.mark.parametrize(("number", "verb"), [("", "create"), ("17", "comment")])
def test_an_issue_is_opened_once(tmp_path: Path, number: str, verb: str) -> None:
    (program := tmp_path / "gh").write_text(
        f'#!/bin/sh\nif [ "$2" = list ]; then echo "{number}"; exit; fi\n'
        f'printf "%s\\n" "$@" > {tmp_path}/said\n'
    )
    program.chmod(0o755)
    done = _workflow(
        tmp_path, "issue", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", ISSUE="it differs",
        GITHUB_REPOSITORY="org/repo", GITHUB_SERVER_URL="https://git.example", GITHUB_RUN_ID="3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = (tmp_path / "said").read_text()
    assert said.startswith(f"issue\n{verb}\n{number}")
    assert "it differs\n\nThe report: https://git.example/org/repo/actions/runs/3" in said
