"""The tests' laboratory for Spark: a cluster, and the real SPYT in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yt.wrapper import YtClient

from minicluster import testing
from tests.support.jvm import submit_args

WORKER = Path(__file__).with_name("spyt_worker.py")
PROXIES = 3
NO_RETRIES = {"proxy": {"retries": {"enable": False}}}


class WorkerError(Exception):
    """What Spark said."""


class Worker:
    """A process with a Spark session; `kill` ends it, its JVM too, as SIGKILL would a driver."""

    def __init__(self, environment: Path, proxy: str, log: Path) -> None:
        self._log = log
        # PySpark names its own Spark there, and another test of this process may have started it.
        own = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                [str(environment / "bin" / "python"), str(WORKER), proxy],
                env={**own, "PYSPARK_SUBMIT_ARGS": submit_args()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                start_new_session=True,
                text=True,
            )
        self.group = self._process.pid

    def begin(self, do: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()

    def end(self) -> Any:
        """Return the answer. Raises WorkerError, or EOFError when the process is dead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(self._log.read_text(errors="replace")[-2000:])
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["ok"]

    def ask(self, do: str, **arguments: Any) -> Any:
        self.begin(do, **arguments)
        return self.end()

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self.group, signal.SIGKILL)
        self._process.wait()


@dataclass
class Lab:
    """A cluster with several RPC proxies, a Python client of it and a Spark session on it."""

    cluster: testing.Running
    yt: YtClient
    worker: Worker
    environment: Path
    folder: Path

    @contextmanager
    def another_worker(self) -> Iterator[Worker]:
        worker = Worker(self.environment, self.cluster.http, self.folder / "another.log")
        try:
            yield worker
        finally:
            worker.kill()


@contextmanager
def start(environment: Path, folder: Path) -> Iterator[Lab]:
    """Start a cluster, and the Spark of an environment on it; logs go to the folder."""
    with testing.start(rpc_proxies=PROXIES) as cluster:
        worker = Worker(environment, cluster.http, folder / "worker.log")
        try:
            yt = YtClient(f"http://{cluster.http}", token="any", config=NO_RETRIES)
            yield Lab(cluster, yt, worker, environment, folder)
        finally:
            worker.kill()
