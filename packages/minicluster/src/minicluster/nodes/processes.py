"""Finding and killing the processes of jobs, by the YT_JOB_ID in their environment (Linux).

As a program it outlives a cluster that dies without a word: it reads job ids, one a line, and when
its input ends it kills what is left of these jobs and removes the folder that it was given.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable

VARIABLE = b"YT_JOB_ID="
PATIENCE = 5.0
"""Seconds in which killed processes have to be gone."""


def kill(job_ids: Iterable[str], sessions: Iterable[int] = ()) -> None:
    """Kill every process of these jobs or sessions; return when none is left.

    A session finds those that were started with another environment. A process may fork while it
    is looked for, so the search ends only when it finds nothing.
    """
    wanted = {VARIABLE + job_id.encode() for job_id in job_ids}
    own = set(sessions)
    if not wanted and not own:
        return
    deadline = time.monotonic() + PATIENCE
    while found := _find(wanted, own):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            return
        time.sleep(0.002)  # a killed process that is no child has no event to wait for


def _find(variables: set[bytes], sessions: set[int]) -> list[int]:
    """Return the processes, zombies left out, that have one of the variables or sessions."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            if sessions and _session(name) in sessions:
                found.append(int(name))
            elif variables:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if not variables.isdisjoint(file.read().split(b"\0")):
                        found.append(int(name))
        except OSError:  # it is gone, or another user's
            continue
    return found


def _session(pid: str) -> int | None:
    """Return the session of a process; None for a zombie."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        state, _parent, _group, session = file.read().rpartition(b")")[2].split()[:4]
    return None if state == b"Z" else int(session)


def main(folder: str) -> None:
    job_ids = [line.strip() for line in sys.stdin]
    kill(job_ids)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
