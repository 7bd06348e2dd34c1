"""A `docker` that starts a minicluster for each container: for tests of what calls Docker.

    python tests/support/docker_stand_in.py WORD...

The folder DOCKER_STAND_IN holds a file for each container, which is removed with it, and `calls`.
DOCKER_STAND_IN_FAILS names a command that fails, such as `run`. With DOCKER_STAND_IN_GATE, `run`
waits until the file of that name is there. The minicluster gets the port of
`--proxy-port`; other arguments of the image have no meaning for it.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

FOLDER, FAILS = "DOCKER_STAND_IN", "DOCKER_STAND_IN_FAILS"
OPERATIONS, GATE = "DOCKER_STAND_IN_OPERATIONS", "DOCKER_STAND_IN_GATE"
DIGEST = f"ghcr.io/ytsaurus/local@sha256:{'0' * 64}"


def installed(path: Path, state: Path) -> dict[str, str]:
    """Put the program into the folder ``path``; return the environment in which it is found."""
    path.mkdir()
    state.mkdir()
    program = path / "docker"
    words = shlex.join([sys.executable, __file__])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", FOLDER: str(state)}


def containers(state: Path) -> list[str]:
    """Return the names of the containers that are there."""
    return sorted(file.stem for file in state.glob("*.pid"))


def calls(state: Path) -> list[list[str]]:
    """Return the words of each call."""
    file = state / "calls"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def main(words: Sequence[str]) -> int:
    """Do what the words say; return the exit code."""
    state = Path(os.environ[FOLDER])
    with (state / "calls").open("a") as file:
        file.write(json.dumps(words) + "\n")
    if words[0] == os.environ.get(FAILS):
        print(f"docker: {words[0]} cannot be done.", file=sys.stderr)
        return 125
    if words[0] == "run":
        _run(state, words)
    if words[0] == "rm":
        _remove(state, words[-1])
    if words[0] == "inspect":
        print("true" if _is_running(_pid(state, words[-1])) else "false")
    if words[:2] == ["image", "inspect"]:
        print(DIGEST)
    if words[0] == "logs":
        print((state / f"{words[-1]}.log").read_text(), end="")
    return 0


def _run(state: Path, words: Sequence[str]) -> None:
    deadline = time.monotonic() + 60  # the test may be over
    while (gate := os.environ.get(GATE)) and not os.path.exists(gate):
        if time.monotonic() > deadline:
            sys.exit(f"docker: there is no {gate}")
        time.sleep(0.05)
    name = words[words.index("--name") + 1]
    port = words[len(words) - 1 - words[::-1].index("--proxy-port") + 1]
    more = ["--operations"] if os.environ.get(OPERATIONS) else []
    with (state / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "minicluster", "--http-port", port, *more],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (state / f"{name}.pid").write_text(str(process.pid))
    print(name)


def _pid(state: Path, name: str) -> int:
    file = state / f"{name}.pid"
    return int(file.read_text()) if file.exists() else 0


def _is_running(pid: int) -> bool:
    with suppress(OSError):
        return (
            pid > 0 and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    return False


def _remove(state: Path, name: str) -> None:
    if pid := _pid(state, name):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    for kind in ("pid", "log"):
        (state / f"{name}.{kind}").unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
