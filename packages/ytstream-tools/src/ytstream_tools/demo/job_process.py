"""The job as a process of its own, as it would run anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.log import Event, events_in, failure_in
from ytstream.settings import environment as variables

from .guard import guarded

PATIENCE_SECONDS = 180.0
"""A start of Spark with SPYT takes 10 to 20 s, and longer where other work runs."""


class JobProcess:
    """One run of ``python -m <package> run``; everything it says goes to ``log``."""

    def __init__(
        self,
        package: str,
        proxy: str,
        log: Path,
        root: Path,
        *words: str,
        token: str = "",
        python: str = sys.executable,
    ) -> None:
        self.log = log
        self._start = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            # A session of its own: a kill of the group takes the JVM and its workers along.
            self._process = subprocess.Popen(
                [python, "-m", package, "run", *words],
                env=environment(proxy, root, token),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=root,
                start_new_session=True,
            )

    @property
    def pgid(self) -> int:
        """The process group: Python, the JVM and its workers."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: killed by that signal."""
        return self._process.poll()

    def has_started(self) -> bool:
        """Return whether its query runs: it says so after recovery."""
        return self.events(Event.RUNNING) > 0

    def events(self, event: Event) -> int:
        """Return how many lines of this event it has said."""
        return events_in(self._said(), event)

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Return the exit code; raises subprocess.TimeoutExpired after ``seconds``."""
        return self._process.wait(seconds)

    def stop(self) -> int:
        """Ask for a graceful stop (SIGTERM only to Python), kill if in vain; return the code."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def kill(self) -> None:
        """Kill the whole group with SIGKILL; harmless when it is gone."""
        try:
            os.killpg(self.pgid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._process.wait()

    def tail(self, lines: int = 15) -> str:
        """Return the error it ended with or, without one, the last lines it said."""
        said = self._said().splitlines()
        failure = failure_in(said)
        return "\n".join(said[failure[0] if failure is not None else -lines :])

    def _said(self) -> str:
        return self.log.read_bytes()[self._start :].decode(errors="replace")


def environment(proxy: str, root: Path, token: str = "") -> dict[str, str]:
    """Return the environment in which a command of the repository ``root`` finds its job.

    Only a cluster elsewhere needs a token.
    """
    # Found in the repository, installed or not.
    path = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    mine = variables.kept(os.environ, variables.CLUSTER)
    own = {"YT_PROXY": proxy, "PYTHONPATH": path.rstrip(os.pathsep)}
    return {**mine, **own, **({"YT_TOKEN": token} if token else {})}


@contextmanager
def running(
    package: str,
    proxy: str,
    log: Path,
    root: Path,
    *words: str,
    token: str = "",
    python: str = sys.executable,
) -> Iterator[JobProcess]:
    """Start the job of the repository ``root``; it is dead at the end, whatever happens.

    It is also if something kills this process.
    """
    job = JobProcess(package, proxy, log, root, *words, token=token, python=python)
    try:
        with guarded(group=job.pgid):
            yield job
    finally:
        job.kill()


def run_command(
    package: str,
    proxy: str,
    root: Path,
    *words: str,
    token: str = "",
    python: str = sys.executable,
) -> str:
    """Return the output of ``python -m <package> ...`` in the repository ``root``.

    Raises JobError when it fails.
    """
    done = subprocess.run(
        [python, "-m", package, *words],
        env=environment(proxy, root, token),
        cwd=root,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise JobError(
            f"`{words[0]}` failed", "its own message is above", code=ErrorCode.COMMAND_FAILED
        )
    return done.stdout
