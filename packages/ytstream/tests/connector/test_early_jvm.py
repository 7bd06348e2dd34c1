"""The JVM that starts while Python imports PySpark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pyspark.java_gateway
import pytest

from tests.support.helpers import unconnected
from ytstream import Job, JobError, cli, entry
from ytstream.connector import early_jvm, local_environment
from ytstream.settings.spark_conf import COLLECTOR

SAYS_WHERE = (
    "import sys; from pathlib import Path; "
    "Path(sys.argv[1]).write_bytes(bytes([0, 0, 4, 1, 0, 0, 0, 2]) + b'ab'); sys.stdin.read()"
)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[early_jvm.Begun]:
    """A process that answers as the JVM does, and ends with its input."""
    folder = TemporaryDirectory()
    words = [sys.executable, "-c", SAYS_WHERE, f"{folder.name}/gateway"]
    found = early_jvm.Begun(subprocess.Popen(words, stdin=subprocess.PIPE), folder)
    monkeypatch.setattr(early_jvm, "_BEGUN", [found])
    yield found
    found.process.kill()
    found.process.wait()


def test_pyspark_gets_the_jvm_that_has_begun(
    begun: early_jvm.Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def launch() -> Any:
        asked.append((os.environ[early_jvm.PORT], os.environ[early_jvm.SECRET]))
        return SimpleNamespace(proc=None)

    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", launch)
    assert early_jvm.gateway().proc is begun.process
    assert asked == [("1025", "ab")]
    assert early_jvm.PORT not in os.environ
    assert early_jvm.gateway() is None, "it is given once"
    early_jvm.end()
    assert begun.process.poll() is None, "it is PySpark's now"


def test_a_jvm_that_nobody_needs_ends(begun: early_jvm.Begun) -> None:
    early_jvm.end()
    assert begun.process.poll() is not None
    assert not Path(begun.folder.name).exists()
    assert early_jvm.gateway() is None


def test_a_signal_ends_it_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "bin/spark-submit"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "")
    monkeypatch.delitem(sys.modules, "pyspark")
    monkeypatch.setattr(early_jvm, "require_java", lambda: None)
    monkeypatch.setattr(local_environment, "prepare", lambda *_: None)
    monkeypatch.setattr(early_jvm, "_BEGUN", listed := list[early_jvm.Begun]())
    monkeypatch.setattr(entry, "AT_A_SIGNAL", [])
    early_jvm.begin(unconnected("transactional").settings, "")
    (begun,) = listed
    for end in entry.AT_A_SIGNAL:
        end()
    assert begun.process.wait() == -signal.SIGKILL
    assert not Path(begun.folder.name).exists()


@pytest.mark.parametrize(("words", "begun"), [(["run"], [COLLECTOR]), (["run", "--dry-run"], [])])
def test_run_begins_it_before_the_job_is_imported(
    words: list[str], begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def refuse() -> Job:
        steps.append("imported")
        raise JobError("no job", "none")

    monkeypatch.setattr(cli, "load", lambda _: unconnected("transactional").settings)
    monkeypatch.setattr(early_jvm, "begin", lambda _, java: steps.append(java))
    assert cli.run("bids", refuse, words) == 1
    assert steps == [*begun, "imported"]


def test_none_begins_where_pyspark_is_imported() -> None:
    """Nor in the tests of a job, which call commands in a process with a JVM."""
    early_jvm.begin(unconnected("transactional").settings, "")
    assert not early_jvm.has_begun()


def test_the_command_line_imports_no_pyspark() -> None:
    """Else no JVM would begin, and a start would take two seconds more."""
    text = (
        "import sys; from ytstream import cli; from ytstream.commands.registry import registry; "
        "from ytstream.connector import early_jvm; "
        "assert registry().commands['run'].early_jvm; print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
