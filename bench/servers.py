"""The minicluster of any tree of sources, as a process; what it takes of processor and memory."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PATIENCE_SECONDS = 60.0


class Server(NamedTuple):
    """A minicluster that serves: its addresses, and its process."""

    http: str
    rpc: str
    pid: int


@contextmanager
def serve(tree: Path) -> Iterator[Server]:
    """Give the minicluster whose sources are in this checkout; stop it when the block is left."""
    source = tree / "packages" / "minicluster" / "src"
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder, "ready.json")
        process = subprocess.Popen(
            [sys.executable, "-m", "minicluster", "--ready-file", ready, "--http-port", "0"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(source)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            yield _wait(process, ready)
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], ready: Path) -> Server:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit("a minicluster did not start")
        time.sleep(0.02)
    found = json.loads(ready.read_text())
    return Server(found["http"], found["rpc"][0], process.pid)


def resident(pid: int) -> float:
    """Return the resident memory of another process in MiB."""
    words = ["ps", "-o", "rss=", "-p", str(pid)]
    return int(subprocess.run(words, capture_output=True, check=True).stdout) / 1024


def processor_seconds(pid: int) -> float:
    """Return the processor time of another process; /proc counts it in hundredths of a second."""
    clock = ctypes.c_int()
    if error := ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)):
        raise OSError(error, os.strerror(error))
    return time.clock_gettime(clock.value)
