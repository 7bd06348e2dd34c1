"""A JVM that starts while Python imports PySpark: each takes two seconds.

PySpark uses a JVM that runs already, where two variables name its port and its secret. The rest is
what PySpark does to start one (java_gateway.py, ``launch_gateway``). Loads no PySpark before that.
"""

from __future__ import annotations

import atexit
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .. import entry
from ..settings.job_settings import Settings
from . import local_environment
from .java_home import require_java

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""Names of the variables for a JVM that runs already."""
_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Begun:
    """A JVM that is about to write its port and its secret into a file."""

    process: subprocess.Popen[bytes]
    folder: TemporaryDirectory[str]

    @property
    def file(self) -> Path:
        return _file(self.folder)

    def kill(self) -> None:
        """End it at once, and remove its folder."""
        self.process.kill()
        self.folder.cleanup()


_BEGUN: list[Begun] = []
"""The JVM of this process that nobody has taken yet."""


def begin(settings: Settings, java: str) -> None:
    """Start the JVM with the options ``java``, unless there is one, or PySpark is here already.

    Raises JobError without Java, PySpark or SPYT.
    """
    if _BEGUN or PORT in os.environ or "pyspark" in sys.modules:
        return
    require_java()
    local_environment.prepare(settings, java)
    folder = TemporaryDirectory(prefix="ytstream-jvm-", ignore_cleanup_errors=True)
    process = subprocess.Popen(
        [
            f"{os.environ['SPARK_HOME']}/bin/spark-submit",
            *shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"]),
        ],
        stdin=subprocess.PIPE,  # the JVM ends when this process does
        env={
            **os.environ,
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(_file(folder)),
        },
        preexec_fn=_ignore_interrupts,
    )
    begun = Begun(process, folder)
    _BEGUN.append(begun)
    entry.AT_A_SIGNAL.append(begun.kill)
    atexit.register(end)  # a command may end before it needs the JVM


def has_begun() -> bool:
    """Return whether there is a JVM that nobody has taken yet."""
    return bool(_BEGUN)


def gateway() -> Any:
    """Wait for the JVM; return PySpark's gateway to it, or None if there is none or it has ended.

    Raises as PySpark does where the JVM does not answer.
    """
    if not _BEGUN:
        return None
    begun = _BEGUN[0]
    while not begun.file.exists():
        if begun.process.poll() is not None:
            end()
            return None
        time.sleep(_POLL_SECONDS)
    written = begun.file.read_bytes()
    length = int.from_bytes(written[4:8], "big")
    _BEGUN.clear()
    begun.folder.cleanup()
    from pyspark.java_gateway import launch_gateway

    os.environ[PORT] = str(int.from_bytes(written[:4], "big"))
    os.environ[SECRET] = written[8 : 8 + length].decode()
    try:
        found = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ[PORT], os.environ[SECRET]
    found.proc = begun.process
    return found


def end() -> None:
    """End the JVM that nobody has taken."""
    for begun in _BEGUN:
        begun.process.terminate()
        begun.process.wait()
        begun.folder.cleanup()
    _BEGUN.clear()


def _file(folder: TemporaryDirectory[str]) -> Path:
    return Path(folder.name) / "gateway"


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to Python, which ends the JVM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
