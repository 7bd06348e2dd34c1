"""Spark's standalone cluster as processes: a master, two workers, and the executors they start.

A worker and its executors are one process group, as if it were a machine.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.support.jvm import OPTIONS, submit_args
from tests.support.waiting import eventually

_DEPLOY = "org.apache.spark.deploy"
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_URL = re.compile(r"spark://127\.0\.0\.1:\d+")
_SECONDS = 120.0
"""A JVM's start, on a machine that may have other work."""
_WORKERS = 2


@dataclass
class Standalone:
    """A cluster that runs."""

    url: str
    folder: Path
    workers: list[subprocess.Popen[bytes]]

    @property
    def submit_args(self) -> str:
        """YTSTREAM_SUBMIT_ARGS of a driver that has its executors there."""
        options = {
            "spark.executor.memory": "1g",
            "spark.executor.cores": "1",
            "spark.executor.extraClassPath": _jars(),
            "spark.executor.extraJavaOptions": _java_options(),
        }
        more = " ".join(f"--conf '{key}={value}'" for key, value in options.items())
        return submit_args(f"{self.url} {more}")

    def executors(self) -> list[int]:
        """Return the processes of the executors."""
        groups, found = {worker.pid for worker in self.workers}, []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ProcessLookupError):
                is_executor = _EXECUTOR in (folder / "cmdline").read_bytes()
                if is_executor and os.getpgid(int(folder.name)) in groups:
                    found.append(int(folder.name))
        return sorted(found)

    def kill_worker(self) -> None:
        """Kill a worker and its executors, as if their machine had no power."""
        _kill(self.workers.pop())

    def drop_shuffles(self) -> int:
        """Remove the shuffle files that executors have written; return how many there were."""
        found = [*self.folder.rglob("shuffle_*.data"), *self.folder.rglob("shuffle_*.index")]
        for path in found:
            path.unlink(missing_ok=True)
        return len(found)


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Run a cluster for the length of the block; its files and logs are in ``folder``."""
    master = _start("master.Master", folder, "--port", "0")
    workers: list[subprocess.Popen[bytes]] = []
    try:
        url = _said(folder / "master.Master.log", _URL)
        for number in range(_WORKERS):
            work = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}"))
            workers.append(_start("worker.Worker", folder, *work, url, number=number))
        for number in range(_WORKERS):
            _said(folder / f"worker.Worker{number}.log", re.compile("Successfully registered"))
        yield Standalone(url, folder, workers)
    finally:
        for process in (*workers, master):
            _kill(process)


def _start(name: str, folder: Path, *words: str, number: int | str = "") -> subprocess.Popen[bytes]:
    home = _folder_of("pyspark")
    properties = folder / "no.properties"  # not those of SPYT's folder: they are a cluster's
    properties.touch()
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",  # their pages are for nobody else
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _java_options(),
        "SPARK_DAEMON_CLASSPATH": _jars(),
        "YT_TOKEN": "minicluster-needs-no-token",
    }
    with (folder / f"{name}{number}.log").open("wb") as log:
        return subprocess.Popen(
            [
                str(home / "bin" / "spark-class"), f"{_DEPLOY}.{name}", "--host", "127.0.0.1",
                "--webui-port", "0", "--properties-file", str(properties), *words,
            ],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip


def _said(log: Path, pattern: re.Pattern[str]) -> str:
    """Return what a log says, once it does."""

    def search() -> re.Match[str] | None:
        return pattern.search(log.read_text(encoding="utf-8", errors="replace"))

    return str(eventually(search, _SECONDS, what=f"{pattern.pattern} in {log}")[0])


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _jars() -> str:
    """Return the class path of SPYT."""
    (core,) = (_folder_of("pyspark") / "jars").glob("spark-core_*.jar")
    scala = core.name.removeprefix("spark-core_").partition("-")[0]
    jars = _folder_of("spyt") / "jars"
    return f"{jars}/scala-{scala}/*:{jars}/common/*"


def _java_options() -> str:
    """Return the options of each JVM.

    On a cluster SPYT's set-up gives all of them its agent (setup-spyt-env.sh). Without it they
    cannot read what a driver says whose classes are patched.
    """
    (agent,) = (_folder_of("spyt") / "jars" / "common").glob("*spyt-patch-agent*.jar")
    return f"-javaagent:{agent} {OPTIONS}"


def _folder_of(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
