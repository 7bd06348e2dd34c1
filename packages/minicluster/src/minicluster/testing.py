"""A minicluster for the length of a test, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .client import Client

START_TIMEOUT = 180.0
"""A start takes about a second. Where other programs keep all cores busy, it took over a minute.
A process that ends is seen at once."""
STOP_TIMEOUT = 10.0


class StartError(Exception):
    """The minicluster did not start; the text is what it wrote, or how it ended."""


@dataclass(frozen=True)
class Running:
    """A running cluster: where it listens, the client of its control interface, its process."""

    http: str
    rpc: list[str]
    client: Client
    pid: int


@contextmanager
def start(
    *,
    http_port: int = 0,
    rpc_proxies: int | None = None,
    load: str | None = None,
    log: str | None = None,
    operations: bool = False,
    node_python: str | os.PathLike[str] | None = None,
    node_java: str | os.PathLike[str] | None = None,
    spark_homes: Sequence[str | os.PathLike[str]] = (),
) -> Iterator[Running]:
    """Give a fresh cluster, or one that loads a saved state; stop it when the block is left.

    `http_port` 0 takes a free one; without `rpc_proxies` there is one, if the extra `rpc` is
    installed; `log` is a file for the log of requests; with `operations` vanilla operations run, on
    nodes that have this Python (a program) and this Java (its home folder), and spark-submit finds
    the Sparks in `spark_homes`, by default the installed one.
    Raises StartError.
    """
    with tempfile.TemporaryDirectory(prefix="minicluster-") as folder:
        ready, output = Path(folder, "ready.json"), Path(folder, "output.txt")
        arguments = ["--ready-file", str(ready), "--http-port", str(http_port)]
        arguments += ["--owned", folder]
        if rpc_proxies is not None:
            arguments += ["--rpc-proxies", str(rpc_proxies)]
        if load is not None:
            arguments += ["--load", load]
        if log is not None:
            arguments += ["--log"]
        if operations:
            arguments += ["--operations"]
        if node_python is not None:
            arguments += ["--node-python", os.fspath(node_python)]
        if node_java is not None:
            arguments += ["--node-java", os.fspath(node_java)]
        for home in spark_homes:
            arguments += ["--spark-home", os.fspath(home)]
        with open(log or output, "ab") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", __package__, *arguments],
                stdin=subprocess.PIPE,  # closed by the system however this process ends
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=_environment(),
            )
        try:
            addresses = _wait_ready(process, ready, Path(log or output))
            http = addresses["http"]
            yield Running(http, addresses["rpc"], Client(http), process.pid)
        finally:
            _stop(process)


def empty(cluster: Running, state: str) -> None:
    """Bring the cluster back to ``state``, a file that it saved; its clock keeps going forward.

    All jobs of its operations are killed.
    """
    control = cluster.client
    control.faults.clear()
    before = control.clock.now()
    control.load(state)
    # Loaded with the state, the clock would be behind the timestamps that were given out.
    control.clock.advance(max(0.0, before - control.clock.now()))
    control.set_label(None)
    control.journal.clear()


def _environment() -> dict[str, str]:
    """Return an environment in which the child finds this very package from any folder."""
    parent = str(Path(__file__).resolve().parents[1])
    paths = [parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _wait_ready(process: subprocess.Popen[bytes], ready: Path, output: Path) -> dict[str, Any]:
    deadline = time.monotonic() + START_TIMEOUT
    while not ready.exists():
        if (code := process.poll()) is not None:
            raise StartError(_said(output) or f"it ended with code {code} and said nothing")
        if time.monotonic() > deadline:
            said = _said(output) or "it said nothing"
            raise StartError(f"it was not ready after {START_TIMEOUT:.0f} s: {said}")
        # A file has no event to wait for that works everywhere.
        time.sleep(0.01)
    found: dict[str, Any] = json.loads(ready.read_text())
    return found


def _said(output: Path) -> str:
    return output.read_text(errors="replace").strip()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
