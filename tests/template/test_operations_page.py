"""Every command of a generated docs/operations.md is run, or is listed with the test that runs it.

Targets of the Makefile are expanded by `make -n`; what they call is run in this process, against a
minicluster that has the job's tables and its ledger. What needs Spark is run dry.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

import pytest

from minicluster import testing as minicluster
from tests.conftest import Generate
from tests.template.test_commands import commands
from tests.template.test_makefile import make
from ytstream import cli
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import Job, JobContext
from ytstream.ledger import ledger_rows
from ytstream.ownership import job_marker
from ytstream.settings.job_settings import load

PACKAGE = "bids_stream"
TOOLS = "packages/ytstream-tools/tests"
QUEUE = "//home/ytstream/bids"


@dataclass(frozen=True)
class Run:
    """What is called in the place of a command, and what it prints."""

    code: int
    said: str
    instead: str = ""
    """Where the page has dots, or a command would go on for ever, or needs Spark."""


RUN = {
    "make provision": Run(0, "everything is in place already"),
    "make rows COUNT=100": Run(0, f"100 sample rows into {QUEUE}"),
    "make status": Run(0, "it was killed: its lock is free"),
    f"python -m {PACKAGE} status --help": Run(0, "--max-lag"),
    "make why": Run(0, "killed: the last process was killed"),
    "make page": Run(0, "page.html: 3 batches until"),
    "make metrics": Run(0, "ytstream_lag_rows{", f"python -m {PACKAGE} metrics --once"),
    f"python -m {PACKAGE} alerts": Run(0, "YtstreamStalled"),
    f"python -m {PACKAGE} --version": Run(0, "ytstream "),
    "make confs": Run(0, "spark.sql.session.timeZone"),
    "make check": Run(0, "has the", f"{PACKAGE} check --permissions"),
    "make stop": Run(0, "the job does not run"),
    "make drain": Run(1, "the job does not run"),
    "make run": Run(0, "nothing was changed", "make run DRY_RUN=1"),
    "make rewind": Run(2, "TO is missing"),
    "make rewind TO=earliest": Run(0, "nothing was changed", "make rewind TO=earliest DRY_RUN=1"),
    'make rewind TO="earliest --overwrite"': Run(
        0, "30 rows would be read again", 'make rewind TO="earliest --overwrite" DRY_RUN=1'
    ),
    "make rewind TO=rows": Run(0, "would be emptied", "make rewind TO=rows DRY_RUN=1"),
    'make rewind TO="rows ..."': Run(
        0, "partition 0: from row 10 to row 4", f'make rewind TO="rows {QUEUE}:0=4" DRY_RUN=1'
    ),
    "make rewind TO=...": Run(0, "nothing was changed", "make rewind TO=latest DRY_RUN=1"),
    "make migrate": Run(0, "nothing to do", "make migrate DRY_RUN=1"),
}
"""Commands of the page that are run, in this order."""
ELSEWHERE = {
    "make ops": f"{TOOLS}/fleet/test_light.py",
    "make logs": "tests/faults/operations/test_operations.py",
    "make submit": "tests/faults/operations/test_operations.py",
    "make submit REPLACE=1": f"{TOOLS}/submitting/test_replacement.py",
    "make submit REPLACE=1 FORCE=1": f"{TOOLS}/submitting/test_replacement.py",
    f"python -m {PACKAGE} complete-until": "packages/ytstream/tests/sealing/test_completeness.py",
    f"python -m {PACKAGE} rehearse": f"{TOOLS}/replay/test_rehearsal.py",
    f"python -m {PACKAGE} capture failed": f"{TOOLS}/replay/test_batch_capture.py",
    "make replay-rejected": "packages/ytstream/tests/rejected/test_rejected_rows.py",
    "make reference FROM=... TO=... KEY=...": f"{TOOLS}/reference/test_building.py",
    "make seal PERIOD=...": f"{TOOLS}/status/test_archive_status.py",
    "make adopt": f"{TOOLS}/adopt/test_adopt.py",
    "make approve": f"{TOOLS}/testing/test_approved_outputs.py",
    "make demo": "tests/template/test_running.py",
    "make rows": "tests/template/test_readme.py",
    "make tables": f"{TOOLS}/adopt/test_adopt.py",
    "make provision rows submit CONFIG=config/laptop.toml": "tests/template/test_readme.py",
    "make stop CONFIG=config/laptop.toml": "tests/template/test_readme.py",
    "make setup": "tests/template/test_packages.py",
    "make lock": "tests/template/test_packages.py",
    "make test": "tests/template/test_running.py",
    "make lint": "tests/template/test_generated.py",
    "make lint test demo": "tests/template/test_running.py",
    "make outdated": "tests/template/test_origin.py",
    "make real": "tests/template/test_real.py",
}
"""Those that are run by another test: they need an operation, Spark, an index or the whole project.
"""


@pytest.fixture(scope="module")
def project(generate: Generate) -> Path:
    """A generated project."""
    return generate()


def _named(project: Path) -> list[str]:
    """Return the commands that the page has in its text."""
    text = (project / "docs/operations.md").read_text(encoding="utf-8")
    return sorted({*re.findall(rf"`(make [a-z-]+[^`]*|python -m {PACKAGE}[^`]*)`", text)})


@pytest.fixture(scope="module")
def job(project: Path) -> Iterator[JobContext]:
    """Connect the project's job, which has read 30 rows in three batches and was killed."""
    with minicluster.start() as cluster, pytest.MonkeyPatch.context() as patch:
        for folder in (project, project / "src"):
            patch.syspath_prepend(folder)
        patch.setenv("YT_PROXY", cluster.http)
        patch.chdir(project)
        before = {*sys.modules}
        settings = load(Path("config/local.toml"))
        declared = _import().reading(1)
        context = JobContext(connect(settings), settings, declared, guarantee_of(declared))
        assert cli.run(PACKAGE, _import, ["provision"]) == 0
        assert cli.run(PACKAGE, _import, ["rows", "--count", "100"]) == 0
        _write_ledger(context)
        yield context
        for name in {*sys.modules} - before:
            if name.partition(".")[0] in (PACKAGE, "sample"):
                del sys.modules[name]


def _import() -> Job:
    found = import_module(f"{PACKAGE}.job").JOB
    assert isinstance(found, Job)
    return found


def _write_ledger(context: JobContext) -> None:
    now, rows = datetime.now(UTC), []
    for number in range(3):
        ended = now - timedelta(minutes=3 - number)
        done = ledger_rows.BatchRow({QUEUE: {number: (0, 10)}}, {"output": 10}, ended, ended)
        mine = ledger_rows.Head(epoch=1, batch=number, number=number + 1)
        rows.append(ledger_rows.batch_row(mine, done))
    head = ledger_rows.Head(
        1, "process 1 on host, abc", 1, 2, 3, {QUEUE: {0: 10, 1: 10, 2: 10, 3: 0}},
        {QUEUE: str(context.client.get(f"{QUEUE}/@id"))}, job_marker.marker_of(context),
    )  # fmt: skip
    context.client.insert_rows(context.settings.ledger, [*rows, ledger_rows.head_row(head)])


def _words(project: Path, command: str) -> tuple[list[str], str]:
    """Return the words for the command line; of a target that make refuses, what it says."""
    if not command.startswith("make "):
        return shlex.split(command.removeprefix("python -m "))[1:], ""
    done = make(project, "-n", *shlex.split(command)[1:])
    for line in done.stdout.splitlines():
        # Without an environment, a command for a person on call is one of the tools'.
        if found := re.match(rf'"[^"]+" -m (?:{PACKAGE}|ytstream_tools) (.*)', line):
            return shlex.split(found[1]), ""
    return [], done.stderr


def test_every_command_of_the_page_is_known(project: Path) -> None:
    assert _named(project) == sorted([*RUN, *ELSEWHERE])
    assert set(ELSEWHERE.values()) <= {
        str(path.relative_to(Path(__file__).parents[2]))
        for path in Path(__file__).parents[2].glob("*/**/test_*.py")
    }


@pytest.mark.parametrize("command", RUN)
def test_a_command_of_the_page_runs(
    project: Path, job: JobContext, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run = RUN[command]
    words, refused = _words(project, run.instead or command)
    capsys.readouterr()
    code = 2
    if words:
        try:
            code = cli.run(PACKAGE, _import, words)
        except SystemExit as ended:  # --help and --version
            code = int(ended.code or 0)
    said = capsys.readouterr()
    assert code == run.code, said.err
    assert run.said in said.out + said.err + refused
    assert "Traceback" not in said.err


QUERY: Callable[[str], list[str]] = re.compile(r"yt .*?select-rows '(.*?)' --format json").findall


def test_the_queries_of_the_page_are_answered(project: Path, job: JobContext) -> None:
    blocks = [*commands(project / "docs/operations.md")]
    queries = [query for block in blocks for query in QUERY(block)]
    answers = [len(list(job.client.select_rows(query))) for query in queries]
    assert answers == [0, 3]
    # The others of its blocks name a secret and a cluster: tests/template/test_commands.py.
    others = [block.split()[0] for block in blocks if not QUERY(block)]
    assert others == ["export", "PYTHONPATH=src:."]
