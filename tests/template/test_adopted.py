"""A repository that has adopted a file: its linters, its own tests, its demo and its preview."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from local_extensions.versions import SPARK
from minicluster import testing as minicluster
from tests.support import all_types
from tests.support.project import DEFAULTS, generate
from tests.support.queues import make_queue
from tests.support.waiting import eventually
from ytstream.cluster.client import connect
from ytstream.schema.columns import resolved
from ytstream.settings.job_settings import load

ROWS = 400
PATIENCE_SECONDS = 180


def _file(folder: Path) -> Path:
    file = folder / "orders.jsonl"
    rows = (
        {
            "id": f"order-{number}",
            "user": ("ann", "bob", "eve")[number % 3],
            "price": number * 0.5,
            "at": f"2024-03-01T{number // 60:02}:{number % 60:02}:00Z",
            "note": None if number % 5 else "привет",
            "tags": ["a"] * (number % 3),
        }
        for number in range(ROWS)
    )
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


@pytest.mark.thorough
def test_a_cluster_is_named_only_if_it_is_asked(tmp_path: Path) -> None:
    project = generate(tmp_path, yt_proxy="nowhere.invalid")

    def errors(*words: str) -> list[str]:
        words = ("bids_stream", "adopt", "--config", "config/production.toml", *words)
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=project,
            env=_environment(project),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stderr.splitlines()

    assert errors("--from", str(_file(tmp_path))) == []
    assert errors("--queue", "orders")[0] == "cluster: nowhere.invalid"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize(
    ("guarantee", "processing"),
    [
        ("transactional", "map"),
        ("idempotent", "map"),
        ("transactional", "join"),
        ("at_least_once", "window"),
        ("transactional", "deduplicate"),
        ("transactional", "aggregate"),
    ],
)
def test_an_adopted_job_is_approved_linted_tested_and_killed(
    tmp_path: Path, installed: dict[str, Path], guarantee: str, processing: str
) -> None:
    project = generate(tmp_path, guarantee=guarantee, processing=processing)
    python = installed[SPARK] / "bin/python"

    def run(*words: str) -> str:
        return _run(project, python, *words)

    run("bids_stream", "adopt", "--from", str(_file(tmp_path)))
    run("bids_stream", "approve")
    for words in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        run(*words)
    assert " skipped" not in run("pytest", "-q", "tests/test_transform.py")
    assert "lost=0" in run("bids_stream", "demo")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize("processing", ["map", "window"])
def test_a_preview_shows_each_save_and_ctrl_c_ends_it_quietly(
    tmp_path: Path, installed: dict[str, Path], processing: str
) -> None:
    project = generate(tmp_path, processing=processing)
    python = installed[SPARK] / "bin/python"
    _run(project, python, "bids_stream", "adopt", "--from", str(_file(tmp_path)))
    file = project / "src/bids_stream/transform.py"
    before = file.read_text()
    log = tmp_path / "preview.log"
    with log.open("w") as sink:
        shown = subprocess.Popen(
            [python, "-m", "bids_stream", "preview", "--watch"],
            cwd=project,
            env=_environment(project),
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        views = _wait_for_views(shown, log, 1)
        assert "cluster: " not in log.read_text()
        for title in ("sample: ", "output: ", "rejected: "):
            assert title in log.read_text()
        for number in range(6):
            fewer = before.replace("events.", 'events.filter("price > 150").')
            file.write_text(fewer if number % 2 == 0 else before)
            saved = time.monotonic()
            views = _wait_for_views(shown, log, views + 1)
            print(f"{processing}: {time.monotonic() - saved:.2f} s from the save to the rows")
        counts = [int(count) for count in re.findall(r"output: (\d+) rows", log.read_text())]
        assert [after < then for then, after in pairwise(counts)] == [True, False] * 3
        file.write_text("def transform(")
        views = _wait_for_views(shown, log, views + 1)
        assert "transform.py:1: " in log.read_text()
        file.write_text(before)
        time.sleep(0.3)  # it is busy with this now
        shown.send_signal(signal.SIGINT)
        assert shown.wait(PATIENCE_SECONDS) == 0
    finally:
        shown.kill()
    last = log.read_text().rpartition("Ctrl-C ends\n")[2]
    assert "error" not in last.lower()
    assert "Traceback" not in last
    assert _running(shown.pid) == []


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
def test_a_queue_of_every_type_gives_files_that_pass_the_linters_and_all_tests(
    tmp_path: Path, installed: dict[str, Path]
) -> None:
    python = installed[SPARK] / "bin/python"
    columns = resolved("QUEUE", [all_types.ID, *all_types.COLUMNS])
    with minicluster.start(rpc_proxies=0) as cluster:
        project = generate(tmp_path, yt_proxy=cluster.http)
        production = "config/production.toml"
        client = connect(load(project / production, {}))
        make_queue(
            client, DEFAULTS["queue_paths"], [*columns, *all_types.ODD], all_types.odd_rows()
        )
        said = _run(project, python, "bids_stream", "adopt", "--config", production)
    assert "skipped: either" in said
    for words in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        _run(project, python, *words)
    _run(project, python, "bids_stream", "approve")
    assert " skipped" not in _run(project, python, "pytest", "-q")


def _running(session: int) -> list[str]:
    """Return the processes of a session, without those that have ended (proc(5))."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            name, _, rest = entry.read_text().rpartition(")")
            state, _, _, its_session, *_ = rest.split()
            if int(its_session) == session and state != "Z":
                found.append(name)
    return found


def _wait_for_views(shown: subprocess.Popen[bytes], log: Path, count: int) -> int:
    """Wait until the preview has shown so many views; return how many it has shown."""
    eventually(
        lambda: log.read_text().count("Ctrl-C ends") >= count,
        PATIENCE_SECONDS,
        meanwhile=lambda: shown.poll() is None,
        said=log.read_text,
        pause=0.02,
    )
    return log.read_text().count("Ctrl-C ends")


def _environment(project: Path) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": f"{project / 'src'}:{project}"}


def _run(project: Path, python: Path, *words: str) -> str:
    done = subprocess.run(
        [python, "-m", *words],
        cwd=project,
        env=_environment(project),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-4_000:]}{done.stderr[-4_000:]}"
    return done.stdout
