"""The end of a driver: the lock goes, Spark closes, and the process ends whatever Spark does."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

import ytstream
from tests.support.helpers import ContextOf, unconnected
from tests.support.jvm import OPTIONS, submit_args
from tests.support.verdict import EXACT
from tests.support.waiting import eventually
from ytstream.commands import run as run_command
from ytstream.connector import local_environment
from ytstream.connector.local_environment import QUICK
from ytstream.errors import JobError
from ytstream.instance import stop_request
from ytstream.instance.lock import InstanceLock
from ytstream.job import JobContext
from ytstream.query import supervisor
from ytstream.settings import spark_conf
from ytstream.spark import jvm_process, session
from ytstream_tools.demo.crash_scenario import drained

ROOT = Path(__file__).parents[4]
PATIENCE_SECONDS = 180
BY_PYTHON = [sys.executable]
"""How a driver's process starts: Python starts the JVM, or spark-submit's JVM starts Python."""
BY_SPARK_SUBMIT = [
    f"{Path(str(find_spec('pyspark').origin)).parent}/bin/spark-submit",  # type: ignore[union-attr]
    "--master", "local[2]",
    "--driver-java-options", f"{OPTIONS} -Duser.home=/nonexistent",
]  # fmt: skip


def _environment(*folders: Path) -> dict[str, str]:
    """Return the variables of a job on a cluster: the token is in the vault's alone."""
    spyt = find_spec("spyt")
    assert spyt is not None
    assert spyt.origin is not None
    mine = {name: text for name, text in os.environ.items() if not name.startswith("YT_")}
    return {
        **mine,
        "YT_SECURE_VAULT_YT_TOKEN": "of-the-vault",
        "SPARK_CONF_DIR": str(Path(spyt.origin).parent / "conf"),
        # SPYT's own writes a folder logs/ where it is started.
        "LOG4J_CONFIGURATION_FILE": str(
            Path(local_environment.__file__).with_name("log4j2.properties")
        ),
        "PYSPARK_PYTHON": sys.executable,
        "YTSTREAM_SUBMIT_ARGS": submit_args(),
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
    }


def test_the_lock_is_free_before_spark_closes(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = provisioned_of("at_least_once")
    lock = InstanceLock(context.client, context.settings.consumer)
    held: list[int] = []

    def run(_: JobContext, at_end: ExitStack) -> None:
        held.append(len(list(lock.holders())))
        at_end.callback(lambda: held.append(len(list(lock.holders()))))

    monkeypatch.setattr(supervisor, "run", run)
    assert run_command.COMMAND.run is not None
    run_command.COMMAND.run(context, argparse.Namespace(dry_run=False))
    assert held == [1, 0]


def test_a_spark_that_closes_is_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a command that is called in another program would end that as well."""
    left: list[int] = []
    monkeypatch.setattr("os._exit", left.append)
    session.close(cast(SparkSession, _Closing(0.0)))
    jvm_process.leave_if_hung(3)
    assert left == []


def test_a_spark_that_hangs_is_given_up_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="job")
    monkeypatch.setattr(session, "CLOSE_SECONDS", 0.1)
    hanging = _Closing(3600.0)
    session.close(cast(SparkSession, hanging))
    assert "Spark does not close within 0 s; this process ends anyway" in caplog.text
    hanging.over.set()
    while any(thread.name == jvm_process.CLOSING for thread in threading.enumerate()):
        time.sleep(0.01)


@pytest.mark.parametrize("java", [QUICK, spark_conf.COLLECTOR])
@pytest.mark.parametrize("is_own", [True, False], ids=["own", "of spark-submit"])
def test_a_person_who_waits_does_not_wait_for_the_end(
    monkeypatch: pytest.MonkeyPatch, java: str, is_own: bool
) -> None:
    """A session for a few rows leaves its JVM to itself. All others close, also on a cluster."""
    jvm = subprocess.Popen(["sleep", "60"])
    closing = _Closing(0.0)
    monkeypatch.setattr(jvm_process, "_process", lambda: jvm if is_own else None)
    monkeypatch.setattr(session, "open_session", lambda context, java: closing)
    with session.opened(unconnected("transactional"), java):
        pass
    is_left = java == QUICK and is_own
    assert closing.is_closed == (not is_left)
    assert (gc.get_freeze_count() > 0) == is_left
    gc.unfreeze()
    if is_left:
        assert jvm.wait() == -signal.SIGTERM
    jvm.kill()


@pytest.mark.parametrize("java", [QUICK, spark_conf.COLLECTOR])
def test_the_jvm_that_prints_the_command_is_quick_too(
    monkeypatch: pytest.MonkeyPatch, java: str
) -> None:
    """It needs SPYT's agent, which SPYT gives it only if the variable is not set."""
    own = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    monkeypatch.setattr(os, "environ", own)
    local_environment.prepare(unconnected("transactional").settings, java)
    given = own.get("SPARK_LAUNCHER_OPTS", "")
    assert QUICK in given
    agents = [word.removeprefix("-javaagent:") for word in given.split() if "spyt-patch" in word]
    assert [Path(agent).is_file() for agent in agents] == [True]


def test_ctrl_c_ends_the_jvm_and_is_all_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    jvm = subprocess.Popen(["sleep", "60"])
    monkeypatch.setattr(jvm_process, "_process", lambda: jvm)

    def call_the_jvm() -> None:
        raise JobError("it does not answer")

    def interrupted() -> None:
        with jvm_process.ended_by_interrupt(), ExitStack() as block:
            block.callback(call_the_jvm)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert jvm.poll() == -signal.SIGTERM
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_without_ctrl_c_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm_process, "_process", lambda: None)
    with pytest.raises(JobError), jvm_process.ended_by_interrupt():
        raise JobError("a mistake")


class _Closing:
    """A session that takes so long to stop, or until ``over``."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.over, self.is_closed = seconds, threading.Event(), False

    def stop(self) -> None:
        self.over.wait(self.seconds)
        self.is_closed = True


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("start", [BY_PYTHON, BY_SPARK_SUBMIT], ids=["python", "spark-submit"])
def test_a_process_ends_with_its_own_code_whatever_spark_does(
    tmp_path: Path, start: list[str]
) -> None:
    """Both end, Python and the JVM, and all lines come out."""
    runtime = Path(ytstream.__file__).parents[1]
    process = subprocess.Popen(
        [*start, str(Path(__file__).with_name("hanging_worker.py"))],
        env=_environment(runtime, ROOT),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        _kill_group(process)
    assert process.returncode == 3
    lines = printed.splitlines()
    assert "the last line" in lines
    (number,) = (line.split()[1] for line in lines if line.startswith("jvm "))
    eventually(lambda: not _is_alive(number), 30)


def _is_alive(number: str) -> bool:
    try:
        status = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _kill_group(process: subprocess.Popen[Any]) -> None:
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.spark
def test_a_driver_as_on_a_cluster_commits_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """spark-submit's JVM has started it, and its token is in the vault's variable alone."""
    # They generate a project, for which the environment of Spark 3.5 has no cookiecutter.
    from tests.faults.two_drivers.job_site import project_of, site_of
    from tests.faults.variants import Variant

    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    variant = Variant("transactional", "map", 1)
    log = tmp_path / "driver.log"
    with site_of(variant, root := project_of(variant, tmp_path), tmp_path) as site:
        site.fill()
        local = [
            f"--conf={key}={value}"
            for key, value in spark_conf.filled(iter(spark_conf.LOCAL), {}).items()
        ]
        with log.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(
                [*BY_SPARK_SUBMIT, *local, str(root / "main.py"), "--config=config/local.toml"],
                env=_environment(root / "src", root) | {"YT_PROXY": site.cluster.http},
                cwd=root,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            eventually(
                drained(site.context),
                PATIENCE_SECONDS,
                meanwhile=lambda: process.poll() is None,
                said=lambda: log.read_text(encoding="utf-8"),
                pause=0.4,
            )
            ended = stop_request.stop(site.context, print)
            assert ended == f"the job has ended: {supervisor.STOPPED}"
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            _kill_group(process)
        assert "of-the-vault" not in log.read_text(encoding="utf-8")
        assert site.count() == EXACT


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
def test_a_job_whose_task_hangs_ends_and_the_next_one_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A total's write gets no reply: cancelling does not reach the task, nor Spark's own end."""
    from tests.faults.two_drivers.job_site import project_of, site_of
    from tests.faults.variants import Variant

    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    variant = Variant("transactional", "aggregate", 1)
    root = project_of(variant, tmp_path)
    with (root / "config/local.toml").open("r+", encoding="utf-8") as file:
        text = file.read()
        file.seek(0)
        file.write(f"stall_seconds = 60\n{text}")
    with site_of(variant, root, tmp_path) as site:
        settings, faults = site.context.settings, site.cluster.client.faults
        driver = site.start("hangs.log")
        where = {"path": settings.outputs["output"]}
        held = faults.add(method="ModifyRows", where=where, action="hold")
        site.fill()
        site.wait_hit(held, driver)
        # 0 after `stall_seconds`; 1 if the client's own time is over before: the batch has failed.
        assert driver.stop() in (0, 1), driver.tail()
        assert not list(InstanceLock(site.context.client, settings.consumer).holders())
        site.start("next.log")
        site.drain()
        site.follow()
        assert site.count() == EXACT
