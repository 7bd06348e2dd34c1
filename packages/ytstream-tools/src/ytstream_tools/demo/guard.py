"""A process that cleans up after this one, should something kill this one.

Its standard input is a pipe that only this process could write. However this process ends, by
SIGKILL too, the system closes the pipe. That works on Linux and on macOS; PR_SET_PDEATHSIG is of
Linux only.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PATIENCE_SECONDS = 10.0


@contextmanager
def guarded(*, group: int | None = None, folder: str | None = None) -> Iterator[None]:
    """Have a process group killed and a folder removed if this process dies in the block.

    At the end of the block nothing is done: the caller does that.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(group or ""), folder or ""],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C in the terminal is not meant for it
    )
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _remove(folder: str) -> None:
    """Remove the folder, into which processes may write until they are dead."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while os.path.exists(folder) and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.1)


if __name__ == "__main__":
    sys.stdin.read()
    if sys.argv[1]:
        _kill(int(sys.argv[1]))
    if sys.argv[2]:
        _remove(sys.argv[2])
