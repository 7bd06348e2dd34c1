"""A repository of 1.0.0 with a running job: `cruft update`, and the job goes on with its state."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from minicluster import testing as minicluster
from tests.journeys import make_commands
from tests.journeys.usage import wait
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
from ytstream_tools.demo.job_process import run_command, running
from ytstream_tools.demo.job_sample import compared, counted
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
TESTED = ("map", "window", "join", "aggregate")
"""Those whose tests run after the update, too."""
SELLER = 'Column("seller", "int64"),\n]'
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
    with minicluster.start() as cluster:
        stream = _stream(project, cluster.http, guarantee, processing)
        _first_half(stream, project, former_environment, tmp_path / "log")
        _update(project)
        targets = ("lint", "test") if processing in TESTED else ("lint",)
        make_commands.make(project, installed[SPARK], *targets)
        _command(project, cluster.http, installed[SPARK], "check")
        _second_half(stream, project, installed[SPARK], tmp_path / "log")
        found = stream.outcomes()
    if guarantee == "at_least_once":
        assert {name: outcome.lost for name, outcome in found.items()} == dict.fromkeys(found, 0)
    else:
        assert_exact(stream.context.job, found)
    assert sum(stream.wanted().values()) > ROWS / 10


LOOKUP = {
    "src/bids_stream/tables.py": {
        "REFERENCE = [": 'REFERENCES = {"auctions": [',
        SELLER: f"{SELLER}}}",
    },
    "src/bids_stream/job.py": {
        "QUEUE, REFERENCE": "QUEUE, REFERENCES",
        "reference=REFERENCE": "references=REFERENCES",
    },
    "src/bids_stream/transform.py": {
        "from pyspark.sql import functions as F\n": "\nfrom ytstream import lookup\n",
        "events: DataFrame, reference: DataFrame": "events: DataFrame",
        'events.join(F.broadcast(reference), "auction", "left")': (
            'lookup(events, "auctions", on="auction")'
        ),
    },
    "config/local.toml": {
        'reference = "//home/ytstream/job/reference"': "",
        "[outputs]\n": '[references]\nauctions = "//home/ytstream/job/reference"\n\n[outputs]\n',
    },
}
"""The steps of docs/lookup.md."""
TOTALS = {
    "src/bids_stream/tables.py": {
        f'"{name}", "int64", required=True': f'"{name}", "int64", required=True, aggregate="{how}"'
        for name, how in {"bids": "sum", "total": "sum", "highest": "max"}.items()
    },
    "src/bids_stream/transform.py": {
        'events.groupBy("auction").agg(': 'events.select(\n        "auction",',
        "F.count(F.lit(1))": 'F.lit(1).cast("long")',
        'F.sum("price")': 'F.col("price")',
        'F.max("price")': 'F.col("price")',
    },
}
"""The steps of docs/upgrading.md."""
HOURLY = {
    "import REJECTED, Column\n": "import REJECTED, Column, Hourly\n",
    'STATIC = ("output",)': 'STATIC = {"output": Hourly(by="date_time")}',
}
"""Of docs/archives.md, for tables.py."""


@pytest.mark.parametrize(
    ("processing", "edits", "command"),
    [("join", LOOKUP, "check"), ("aggregate", TOTALS, "migrate")],
    ids=["lookup", "totals"],
)
def test_a_job_takes_what_is_new_by_its_page(
    former_environment: Path,
    installed: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    edits: Mapping[str, Mapping[str, str]],
    command: str,
) -> None:
    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    project = _of_the_release(tmp_path, "transactional", processing)
    with minicluster.start() as cluster:
        stream = _stream(project, cluster.http, "transactional", processing)
        _first_half(stream, project, former_environment, tmp_path / "log")
        _update(project)
        for file, changes in edits.items():
            make_commands.edit(project / file, changes)
        make_commands.make(project, installed[SPARK], "format")
        _command(project, cluster.http, installed[SPARK], command)
        _second_half(stream, project, installed[SPARK], tmp_path / "log")
        found = stream.outcomes()
    assert_exact(stream.context.job, found)
    assert sum(stream.wanted().values()) > ROWS / 10


def test_a_table_for_each_batch_becomes_a_table_for_each_hour(
    former_environment: Path,
    installed: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each row stays in the table of its batch, or is in that of its hour."""
    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    project = _of_the_release(tmp_path, "transactional", STATIC)
    log, environment = tmp_path / "log", installed[SPARK]
    python = str(environment / "bin" / "python")
    with minicluster.start() as cluster:
        stream = _stream(project, cluster.http, "transactional", STATIC)
        _first_half(stream, project, former_environment, log)
        before = _rows_by_table(stream)
        _update(project)
        make_commands.edit(project / "src/bids_stream/tables.py", HOURLY)
        _command(project, cluster.http, environment, "check")
        stream.send(ROWS)
        _read_all(project, cluster.http, environment, log)
        cluster.client.clock.advance(2 * 3_600)  # so that the hour of the newest rows is over
        with running(PACKAGE, cluster.http, log, project, python=python) as job:
            wait(lambda: _rows_by_table(stream).total() == stream.wanted().total(), job)
            _command(project, cluster.http, environment, "drain")
            assert job.wait() == 0, job.tail(60)
        after = _rows_by_table(stream)
    assert {table for table, _ in before} < {table for table, _ in after}
    assert before <= after
    assert _rows(after) == stream.wanted()


def _rows_by_table(stream: Stream) -> Counter[tuple[str, Any]]:
    """Return the rows of a folder, each with the name of its table."""
    client, folder = stream.client, stream.settings.output
    columns = compared(stream.context.job, "output")
    return Counter[tuple[str, Any]](
        {
            (str(name), row): times
            for name in client.list(folder)
            for row, times in counted(client.read_table(f"{folder}/{name}"), columns).items()
        }
    )


def _rows(by_table: Counter[tuple[str, Any]]) -> Counter[Any]:
    found = Counter[Any]()
    for (_, row), times in by_table.items():
        found[row] += times
    return found


def _first_half(stream: Stream, project: Path, environment: Path, log: Path) -> None:
    proxy = stream.settings.proxy
    _command(project, proxy, environment, "provision")
    demo_tables.fill_reference(stream.context, stream.sample)
    stream.send(ROWS)
    _read_all(project, proxy, environment, log)


def _update(project: Path) -> None:
    cruft(project, "update", "--skip-apply-ask")
    commit(project, "updated")


def _second_half(stream: Stream, project: Path, environment: Path, log: Path) -> None:
    """Send more rows, and those that close windows and sessions."""
    stream.send(ROWS)
    for row in stream.sample.closing(stream.context.job, stream.sent):
        _read_all(project, stream.settings.proxy, environment, log)
        stream.publish([row])
    _read_all(project, stream.settings.proxy, environment, log)


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


def _command(project: Path, proxy: str, environment: Path, *words: str) -> None:
    """Run a command of the job. Raises JobError if it fails."""
    run_command(PACKAGE, proxy, project, *words, python=str(environment / "bin" / "python"))


def _read_all(project: Path, proxy: str, environment: Path, log: Path) -> None:
    """Run the job until it has read all rows; `drain` stops it."""
    python = str(environment / "bin" / "python")
    with running(PACKAGE, proxy, log, project, python=python) as job:
        try:
            wait(job.has_started, job)
            _command(project, proxy, environment, "drain")
        except JobError as error:
            raise AssertionError(job.tail(60)) from error
        assert job.wait() == 0, job.tail(60)
