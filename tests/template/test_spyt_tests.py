"""`make spyt-tests`: a checkout that is none, and one with a test that says what it was given."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import ROOT
from tests.support.waiting import eventually
from tools import spyt_plugin, spyt_tests
from tools.conformance import Answers

UTILS = """
import os
YT_PROXY = "127.0.0.1:" + os.environ["PROXY_PORT"]
DRIVER_CLIENT_CONF = {"spark.driver.host": "172.17.0.1", "spark.driver.port": "27151"}
SPARK_CONF = dict(DRIVER_CLIENT_CONF)
"""
CYPRESS = """
def patch_conf(client, python, java):
    client.set("//home/spark/conf/global/python_of_the_tests", python)
"""
TEST = """
import os
import time
from common.cluster_utils import DEFAULT_SPARK_CONF
from utils import DRIVER_CLIENT_CONF, SPARK_CONF, YT_PROXY
from yt.wrapper import YtClient

def test_it_is_given_what_the_container_would_have():
    assert DRIVER_CLIENT_CONF == {"spark.driver.host": "127.0.0.1", "spark.driver.port": "27151"}
    assert os.path.isfile(SPARK_CONF["spark.ytsaurus.java.home"] + "/bin/java")
    assert DEFAULT_SPARK_CONF["spark.ytsaurus.java.home"]
    assert os.path.isdir(os.environ["SPARK_CONF_DIR"])
    conf = YtClient(YT_PROXY, token="token").get("//home/spark/conf/global")
    assert conf["python_of_the_tests"] == "python3"
    assert conf["environment"]["YT_IP_ADDRESS_DEFAULT"] == "localhost"

def test_it_fails():
    assert 1 == 2

def test_it_hangs():
    time.sleep(60)
"""


HANGING = """
import json
import os
import subprocess

def test_it_hangs():
    driver = subprocess.Popen(["sleep", "300"])
    with open("started.new", "w") as file:
        json.dump([os.getpgrp(), int(os.environ["PROXY_PORT"])], file)
    os.rename("started.new", "started.json")
    driver.wait()
"""
"""It says which processes are there, at once, and waits with a driver."""


def test_a_folder_that_is_no_checkout_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spyt_tests.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"error: {tmp_path} is not a checkout of ytsaurus-spyt: it has no e2e-test/tests\n"
    )


def _write_checkout(folder: Path, test: str) -> None:
    tests, common = folder / "e2e-test" / "tests", folder / "e2e-test" / "common"
    tests.mkdir(parents=True)
    common.mkdir()
    (common / "__init__.py").touch()
    (common / "cluster_utils.py").write_text("DEFAULT_SPARK_CONF = {}\n")
    (common / "cypress.py").write_text(CYPRESS)
    (tests / "conftest.py").touch()
    (tests / "utils.py").write_text(UTILS)
    (tests / "test_toy.py").write_text(test)


@pytest.mark.thorough
@pytest.mark.slow
def test_a_file_is_run_on_a_minicluster_with_what_it_assumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spyt_tests, "WORK", tmp_path / "work")
    monkeypatch.setenv(spyt_plugin.LIMIT, "1")
    _write_checkout(tmp_path, TEST)
    found = spyt_tests.run_file(tmp_path, "test_toy.py")
    assert (found.agree, found.problem) == (1, "")
    assert [*found.differing] == ["test_toy.py::test_it_fails", "test_toy.py::test_it_hangs"]
    assert "not done after 1 s" in found.differing["test_toy.py::test_it_hangs"]


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
def test_an_end_of_the_tool_is_one_of_all_that_it_started(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    _write_checkout(tmp_path, HANGING)
    words = [str(tmp_path), "test_toy.py"]
    folder = f"spyt_tests.WORK = __import__('pathlib').Path({str(tmp_path)!r}, 'work')"
    tool = subprocess.Popen(
        [sys.executable, "-c", f"from tools import spyt_tests; {folder}; "
         f"raise SystemExit(spyt_tests.run({words!r}))"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        started = tmp_path / "work" / "started.json"
        eventually(lambda: started.is_file() or tool.poll() is not None)
        group, port = json.loads(started.read_text())
        assert _listens(port)
        tool.send_signal(number)
        _, error = tool.communicate(timeout=60)
    finally:
        tool.kill()
    assert tool.returncode == code
    assert ("interrupted: pytest and its minicluster are stopped\n" in error) == (code == 130)
    # SIGKILL is noticed by others, a moment later.
    eventually(lambda: not _is_alive(group) and not _listens(port))


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def test_the_results_are_a_table_with_each_failure_below_it() -> None:
    results = {
        "test_x.py": Answers(3, 1, {"test_x.py::test_y": "assert 1 == 2\nmore"}),
        "test_z.py": Answers(problem="not done after 9 s"),
    }
    assert spyt_tests.table_of(results) == (
        "| file | passed |\n|---|---|\n| `test_x.py` | 3 of 5 |\n"
        "| `test_z.py` | not done after 9 s |\n\ntest_x.py::test_y: assert 1 == 2"
    )


def test_the_page_names_tests_that_exist() -> None:
    suites = (ROOT / "packages/minicluster/tests/spyt/README.md").read_text()
    files = [(ROOT / name).read_text() for name in re.findall(r"`(packages/\S+\.py)`", suites)]
    named = re.findall(r"^\| .* \| `(\w+)` \|$", suites, re.M)
    assert len(files) == 2
    assert named
    assert [name for name in named if not any(f"def test_{name}(" in text for text in files)] == []
