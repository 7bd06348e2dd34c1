"""The README of a generated project: it names what exists, and its commands do what it says."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from minicluster import testing
from packages.ytstream.tests.examples import example
from tests.jvm import submit_args
from tests.project import YTSTREAM, Variant, generate, variant_answers
from ytstream import cli
from ytstream.demo.screen import may_repeat

#: As many sample rows as the demo puts into each queue.
DEMO_ROWS = 20_000
LOCAL = "127.0.0.1:18080"
#: Of a start of Spark, and of the batches until the closed sessions are written.
PATIENCE_SECONDS = 300.0


def blocks(readme: Path, language: str) -> list[str]:
    """Return the fenced blocks of ``language``."""
    text = readme.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_every_target_it_names_exists(project: Path) -> None:
    text = (project / "README.md").read_text(encoding="utf-8")
    named = {
        word
        for words in re.findall(r"(?:`|^)make((?: +[a-z]+\b)+)", text, re.MULTILINE)
        for word in words.split()
    }
    assert {"lint", "test", "demo", "rows", "status", "submit"} <= named
    targets = re.findall(r"^([a-z]+):", (project / "Makefile").read_text(), re.MULTILINE)
    assert named <= {*targets}


def test_every_file_it_names_exists(project: Path) -> None:
    text = (project / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./*-]+\.(?:py|toml|md))`", text))
    assert {"sample/rows.py", "config/production.toml", "tests/test_job.py"} <= named
    for name in named:
        assert [*project.glob(name), *project.glob(f"s*/**/{name}")], name


def test_every_command_it_names_exists(project: Path) -> None:
    text = (project / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(rf"python -m {project.name.replace('-', '_')} ([\w-]+)", text))
    assert {"migrate", "rewind", "submit"} <= named
    assert named <= {*cli.ON_THE_CLUSTER, *cli.HERE}


def test_the_messages_that_it_quotes_are_those_of_the_runtime(project: Path) -> None:
    text = (project / "README.md").read_text(encoding="utf-8")
    rows = text.partition("\n| you see |")[2].partition("\n\n")[0]
    first_cells = re.findall(r"^\| (.*?) \|", rows, re.MULTILINE)
    quoted = {part for cell in first_cells for part in re.findall(r"`([^`]* [^`]*)`", cell)}
    quoted |= {"recovery: first read of ...: from its ... rows, by partition ..."}
    quoted -= {word for word in quoted if word.startswith("make ")}
    assert len(quoted) > 10
    said = "\n".join(_texts(YTSTREAM))
    for message in quoted:
        own = re.sub(r"^(error|watch|recovery|\.\.\.): ", "", message)  # put before every line
        parts = [re.escape(part) for part in own.split("...")]
        assert re.search(r"[^\n]*".join(parts), said), message


def _texts(folder: Path) -> Iterator[str]:
    """Yield the texts in the code of a folder, a line each; a value in one is left out."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            values = node.values if isinstance(node, ast.JoinedStr) else [node]
            parts = [
                value.value
                for value in values
                if isinstance(value, ast.Constant) and isinstance(value.value, str)
            ]
            yield "\0".join(parts).replace("\n", " ")


@pytest.mark.slow
def test_the_figures_of_its_demo_are_those_of_the_sample(project: Path) -> None:
    text = (project / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^RESULT (.*)$", text, re.MULTILINE)
    shown = dict(word.split("=") for word in line.split())
    guarantee, processing, queues = shown["guarantee"], shown["processing"], int(shown["queues"])
    assert f"| guarantee | `{guarantee}` |\n| processing | `{processing}` |\n" in text
    assert queues == text.count("INFO recovery: first read of ")
    found = example(guarantee, processing, queues, rejects=True)
    sent = [row for queue in range(queues) for row in found.sample.make(DEMO_ROWS, queue + 1)]
    sent += found.sample.closing(found.job, sent)
    repeated = int(shown["duplicated"])
    assert (repeated > 0) == may_repeat(found.job)
    assert int(shown["rows_in"]) == len(sent)
    assert int(shown["rows_out"]) == found.sample.wanted(found.job, sent).total() + repeated
    assert int(shown["rejected"]) == found.sample.wanted(found.job, sent, "rejected").total()
    assert (shown["lost"], shown["kills"], shown["restarts"]) == ("0", "1", "1")


@pytest.mark.parametrize(
    "variant",
    [
        ("at_least_once", "window", "multi"),
        ("transactional", "join", "multi"),
        *(
            pytest.param(variant, marks=pytest.mark.journey)
            for variant in (
                ("transactional", "map", "single"),
                ("at_least_once", "deduplicate", "single"),
                ("transactional", "aggregate", "single"),
                ("at_least_once", "sessions", "multi"),
            )
        ),
    ],
    ids="-".join,
)
@pytest.mark.slow
def test_its_commands_fill_the_queue_of_a_minicluster(tmp_path: Path, variant: Variant) -> None:
    project = generate(tmp_path, **variant_answers(variant))
    scripts = blocks(project / "README.md", "sh")
    (words,) = re.findall(r"^make (provision rows status)$", "".join(scripts), re.MULTILINE)
    (own,) = [script for script in scripts if "insert-rows" in script]
    with testing.start() as cluster:

        def said(*command: str) -> str:
            done = subprocess.run(
                command,
                cwd=project,
                env={
                    **os.environ,
                    "PATH": f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}",
                    "PYTHONPATH": os.pathsep.join([str(project / "src"), str(project)]),
                    "YT_PROXY": cluster.http,
                },
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            return done.stdout

        package = project.name.replace("-", "_")
        shown = [said(sys.executable, "-m", package, word) for word in words.split()]
        assert shown[-1].replace(cluster.http, LOCAL) in blocks(project / "README.md", "text")

        lines = own.replace(LOCAL, cluster.http).replace(". .venv/bin/activate", "set -e")
        assert LOCAL in own
        said("sh", "-c", re.sub(r"sleep \d+.*", "", lines))
        queue = variant_answers(variant)["queue_paths"].split()[0]
        query = f'event_id from [{queue}] where is_prefix("mine", event_id)'
        found = said("yt", "--proxy", cluster.http, "select-rows", query, "--format", "json")
        assert len(found.splitlines()) == (2 if "for " in own else 1)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
def test_a_newcomer_watches_the_sessions_of_the_sample(tmp_path: Path) -> None:
    """The commands of "Watch it run", one after the other, with the answers that are printed."""
    project = generate(tmp_path, processing="sessions")
    (project / ".venv").symlink_to(sys.prefix)
    readme = project / "README.md"
    (own,) = [script for script in blocks(readme, "sh") if "insert-rows" in script]
    send, select = re.split(r"^sleep .*\n", own, flags=re.MULTILINE)
    activate = own.splitlines()[0]
    with testing.start() as cluster, (project / "run.log").open("w") as log:
        # Given as another one, the shared environment does not get the project installed.
        make = ["make", f"VENV={sys.prefix}"]
        process: dict[str, Any] = {
            "cwd": project,
            "env": {**os.environ, "YT_PROXY": cluster.http, "PYSPARK_SUBMIT_ARGS": submit_args()},
            "text": True,
        }

        def said(*command: str) -> str:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, check=True, timeout=PATIENCE_SECONDS, **process
            )
            return str(done.stdout).replace(cluster.http, LOCAL)

        def script(lines: str) -> str:
            return said("sh", "-c", lines.replace(LOCAL, cluster.http))

        said(*make, "provision", "rows", "status")
        assert "transform() ok: the columns of OUTPUTS" in said(*make, "check")
        with subprocess.Popen(
            [*make, "run"], stdout=log, stderr=log, start_new_session=True, **process
        ) as job:
            try:
                _wait(lambda: " batch 1-0: read 1,000 " in (project / "run.log").read_text())
                assert "lag: 0 rows" in said(*make, "status")
                script(send)
                _wait(lambda: script(f"{activate}\n{select}") in blocks(readme, "text"))
                assert "the job has ended: stopped" in said(*make, "stop")
                assert job.wait(PATIENCE_SECONDS) == 0
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(job.pid, signal.SIGKILL)


def _wait(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < end
        time.sleep(1)
