"""A repository of 1.0.0 with a running job: `cruft update`, and the job goes on with its state."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minicluster import testing as minicluster
from tests.journeys import making
from tests.support.examples import PAIRS, example
from tests.support.jvm import submit_args
from tests.support.project import ROOT, make_static, user_config
from tests.support.static_outputs import static
from tests.support.upgrades import commit, cruft, git, template_as_it_stands
from ytstream.cluster.client import connect
from ytstream.errors import JobError
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.settings.job_settings import load
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.job_process import JobProcess, run_command, running
from ytstream_tools.testing.job_stream import Stream, assert_exact

pytestmark = [pytest.mark.spark, pytest.mark.journey]

RELEASE = "7d7dfc5d9c6a23354fa4bbb8c5aef8a42beaa74d"
"""The commit of 1.0.0."""
SPARK = "4.1"
"""Its default."""
ROWS = 600
"""Of each half."""
PACKAGE = "bids_stream"
STATIC = "static"
"""A `map` whose output is static."""
JOBS = (*(pair for pair in PAIRS if pair[1] != "merge"), ("transactional", STATIC))


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template of 1.0.0."""
    known = ["git", "cat-file", "-e", f"{RELEASE}^{{commit}}"]
    if subprocess.run(known, cwd=ROOT, check=False, capture_output=True).returncode:
        pytest.skip("this clone has no history, so it lacks the commit of 1.0.0")
    clone = tmp_path_factory.mktemp("former") / "template"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    git(clone, "checkout", "--quiet", RELEASE)
    return clone


@pytest.fixture(scope="module")
def former_environment(
    former: Path, environments: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An environment with the packages of 1.0.0."""
    target = tmp_path_factory.mktemp("former-environment") / SPARK
    words = [sys.executable, "-m", "tools.overlay", str(environments[SPARK]), str(target)]
    subprocess.run(words, cwd=former, check=True)
    return target


@pytest.mark.parametrize(("guarantee", "processing"), JOBS)
def test_a_job_goes_on_after_an_update(
    former_environment: Path,
    installed: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
    processing: str,
) -> None:
    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    project = _of_the_release(tmp_path, guarantee, processing)
    now = installed[SPARK] / "bin" / "python"
    with minicluster.start() as cluster:
        stream = _stream(project, cluster.http, guarantee, processing)
        of_1_0_0 = former_environment / "bin" / "python"
        _command(project, cluster.http, of_1_0_0, "provision")
        demo_tables.fill_reference(stream.context, stream.sample)
        stream.send(ROWS)
        _read_all(project, cluster.http, of_1_0_0, tmp_path / "log")

        cruft(project, "update", "--skip-apply-ask")
        commit(project, "updated")
        making.make(project, installed[SPARK], "lint")
        said = _command(project, cluster.http, now, "check")
        assert "error" not in said.lower(), said
        stream.send(ROWS)
        for row in stream.sample.closing(stream.context.job, stream.sent):
            _read_all(project, cluster.http, now, tmp_path / "log")
            stream.publish([row])
        _read_all(project, cluster.http, now, tmp_path / "log")
        found = stream.outcomes()
    if guarantee == "at_least_once":
        assert {name: outcome.lost for name, outcome in found.items()} == dict.fromkeys(found, 0)
    else:
        assert_exact(stream.context.job, found)
    assert sum(stream.wanted().values()) > ROWS / 10


def _of_the_release(folder: Path, guarantee: str, processing: str) -> Path:
    """Return a repository that `cruft create` has made of the template of 1.0.0."""
    template = template_as_it_stands(folder)
    answers = {
        "guarantee": guarantee,
        "processing": "map" if processing == STATIC else processing,
    }
    words = ("--no-input", "--config-file", str(user_config(folder)))
    given = ("--checkout", RELEASE, "--extra-context", json.dumps(answers))
    cruft(folder, "create", str(template), *words, *given)
    project = folder / "bids-stream"
    if processing == STATIC:
        make_static(project)
    commit(project, "generated")
    return project


def _stream(project: Path, proxy: str, guarantee: str, processing: str) -> Stream:
    """Return what was sent to the job of a project, and what must come of it; it runs elsewhere."""
    kind = "map" if processing == STATIC else processing
    found = example(guarantee, kind, rejects=True)
    job = static(found.job, "output") if processing == STATIC else found.job
    settings = load(project / "config" / "local.toml", {"YT_PROXY": proxy})
    context = JobContext(connect(settings), settings, job, guarantee_of(job))
    no_session: Any = None
    return Stream(context, found.sample, no_session)


def _command(project: Path, proxy: str, python: Path, *words: str) -> str:
    return run_command(PACKAGE, proxy, project, *words, python=str(python))


def _read_all(project: Path, proxy: str, python: Path, log: Path) -> None:
    """Run the job until it has read all rows; it ends in words, not by a kill."""
    with running(PACKAGE, proxy, log, project, python=str(python)) as job:
        try:
            _wait_started(job)
            _command(project, proxy, python, "drain")
        except JobError as error:
            raise AssertionError(job.tail(60)) from error
        assert job.wait() == 0, job.tail(60)


def _wait_started(job: JobProcess) -> None:
    while not job.has_started():
        assert job.exit_code is None, job.tail(60)
