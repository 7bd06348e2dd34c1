"""Jobs as processes of this machine. A thread for each job waits for it, beside the event loop."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread, Timer
from typing import Any, Protocol

from ..core.errors import YtError, generic
from ..operations.model import Ending, Launch
from . import processes
from .bounded_stderr import Kept
from .environment import Tools, environment_of
from .exit_error import error_of, not_prepared
from .sandbox import LONGEST_SOCKET_PATH, Folders, Slot

SHELL = "/bin/bash"
BLOCK = 1 << 16


class Socket(Protocol):
    """A served Unix socket."""

    def down(self) -> Coroutine[Any, Any, None]: ...


ServeSocket = Callable[[str], Coroutine[Any, Any, Socket]]
Report = Callable[[str, Ending], None]


@dataclass
class _Run:
    """One job on its node."""

    launch: Launch
    slot: Slot
    stderr: Kept
    session: int | None = None
    is_killed: bool = False
    starting: Lock = field(default_factory=Lock)
    """Held while a process starts: a kill finds it, or keeps it from starting."""
    over: Event = field(default_factory=Event)

    @property
    def id(self) -> str:
        return self.launch.job_id


class LocalNodes:
    """The nodes of a cluster that runs operations. Made and closed inside of an event loop."""

    available = True

    def __init__(self, tools: Tools, serve_socket: ServeSocket, report: Report) -> None:
        self._tools = tools
        self._serve_socket = serve_socket
        self._report = report
        self._loop = asyncio.get_running_loop()
        self.root = _short_folder()
        self._folders = Folders(self.root)
        self._numbers = itertools.count(1)
        self._runs: dict[str, _Run] = {}
        self._heir = _start_heir(self.root)
        self._is_closed = False

    def start(self, launch: Launch) -> None:
        if self._is_closed:  # the scheduler starts again what close() has killed
            return
        slot = self._folders.slot(next(self._numbers))
        run = _Run(launch, slot, Kept(launch.task.stderr_bound))
        self._runs[run.id] = run
        self._tell_heir(run.id)
        Thread(target=self._work, args=[run], name=f"job {run.id}", daemon=True).start()

    def kill(self, job_ids: Iterable[str]) -> None:
        runs = [self._runs[job_id] for job_id in job_ids if job_id in self._runs]
        for run in runs:
            with run.starting:
                run.is_killed = True
        sessions = [run.session for run in runs if run.session is not None]
        processes.kill([run.id for run in runs], sessions)

    def stderr(self, job_id: str) -> bytes:
        run = self._runs.get(job_id)
        return run.stderr.bytes() if run else b""

    def clear(self) -> None:
        self.kill(list(self._runs))

    async def close(self) -> None:
        """Kill every job and remove all folders."""
        self._is_closed = True
        self.clear()
        runs = list(self._runs.values())
        await asyncio.to_thread(lambda: [run.over.wait(processes.PATIENCE) for run in runs])
        assert self._heir.stdin is not None
        self._heir.stdin.close()
        await asyncio.to_thread(self._heir.wait)

    # In the thread of a job

    def _work(self, run: _Run) -> None:
        try:
            error = self._run(run)
        except Exception as problem:  # whatever it is, the job must not seem to run
            error = not_prepared(problem)
        shutil.rmtree(run.slot.root, ignore_errors=True)
        ending = Ending(error.to_dict() if error else None, run.stderr.bytes())
        try:
            self._loop.call_soon_threadsafe(self._ended, run, ending)
        except RuntimeError:  # the loop has ended: nobody waits for a report
            run.over.set()

    def _run(self, run: _Run) -> YtError | None:
        """Run a job from its sandbox to its last process; return its error."""
        self._folders.prepare(run.slot, run.launch)
        if not run.launch.task.rpc_socket:
            return self._run_processes(run)
        serving = self._serve_socket(str(run.slot.socket))
        socket = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        try:
            return self._run_processes(run)
        finally:
            asyncio.run_coroutine_threadsafe(socket.down(), self._loop).result()

    def _run_processes(self, run: _Run) -> YtError | None:
        reading, writing = os.pipe()
        reader = Thread(target=_read, args=[reading, run.stderr], daemon=True)
        reader.start()
        try:
            with run.starting:
                if run.is_killed:
                    return error_of(-signal.SIGKILL)
                process = self._start_process(run, writing)
                run.session = process.pid
        finally:
            os.close(writing)
        limit = _Limit(run.launch.task.time_limit, lambda: self.kill([run.id]))
        # The process stays a zombie until its descendants are dead: its session keeps its number.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        limit.cancel()
        processes.kill([run.id], [process.pid])
        run.session = None
        reader.join()
        return error_of(process.wait(), too_long=limit.is_reached)

    def _start_process(self, run: _Run, stderr: int) -> subprocess.Popen[bytes]:
        task = run.launch.task
        return subprocess.Popen(
            [SHELL, "-c", task.command],
            cwd=run.slot.sandbox,
            env=environment_of(run.launch, self._tools, run.slot),
            stdin=subprocess.DEVNULL,
            stdout=stderr if task.stdout_to_stderr else subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )

    # In the event loop

    def _ended(self, run: _Run, ending: Ending) -> None:
        self._runs.pop(run.id, None)
        run.over.set()
        self._report(run.id, ending)

    def _tell_heir(self, job_id: str) -> None:
        assert self._heir.stdin is not None
        with suppress(BrokenPipeError):  # killed: only a cluster that is killed would miss it
            self._heir.stdin.write(f"{job_id}\n".encode())
            self._heir.stdin.flush()


def _read(pipe: int, kept: Kept) -> None:
    with open(pipe, "rb", buffering=0) as file:
        while data := file.read(BLOCK):
            kept.add(data)


class _Limit:
    """Kills a job after so many seconds; None is no limit."""

    def __init__(self, seconds: float | None, kill: Callable[[], None]) -> None:
        self.is_reached = False
        self._kill = kill
        self._timer = Timer(seconds or 0, self._reach)
        self._timer.daemon = True
        if seconds is not None:
            self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()

    def _reach(self) -> None:
        self.is_reached = True
        self._kill()


def _short_folder() -> Path:
    """Return a new folder in which the path of a socket is not too long. Raises YtError."""
    for parent in (None, "/tmp"):
        folder = Path(tempfile.mkdtemp(prefix="mc-", dir=parent)).resolve()
        if len(os.fsencode(folder / "slots" / "1000000" / "rpc")) <= LONGEST_SOCKET_PATH:
            return folder
        folder.rmdir()
    raise generic("no temporary folder has a path short enough for Unix sockets")


def _start_heir(folder: Path) -> subprocess.Popen[bytes]:
    """Start the process that cleans up if this one is killed."""
    return subprocess.Popen(
        [sys.executable, "-I", processes.__file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={},
    )
