"""The official `yt` in a process that is loaded once: see `yt_shell.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Shell:
    """Runs `yt` with a cluster set in its environment."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def __call__(self, *arguments: str, given: str | bytes = b"") -> str:
        """Return the program's output; fail with it if the program fails."""
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def run(self, *arguments: str, given: str | bytes = b"") -> Done:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            Path(folder, "in").write_bytes(given.encode() if isinstance(given, str) else given)
            self._process.stdin.write(json.dumps([arguments, folder]) + "\n")
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            return Done(code, Path(folder, "out").read_bytes(), Path(folder, "err").read_bytes())


def environment(http: str) -> dict[str, str]:
    return {**os.environ, "YT_PROXY": http, "YT_TOKEN": "any"}


@contextmanager
def running_shell(http: str, folder: Path) -> Iterator[Shell]:
    """Yield a shell on the cluster at this address, which keeps its files in the folder."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("yt_shell.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(http),
    ) as process:
        yield Shell(process, folder)
