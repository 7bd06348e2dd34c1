"""`yt`, loaded once and forked for each command: loading it and its parsers is most of the time.

Run as a process. Reads lines of JSON, a command's arguments and a folder with its stdin as the file
`in`; leaves `out` and `err` there and answers with the exit code.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path

from yt.cli import yt_binary

PATIENCE_SECONDS = 120


def serve() -> object:
    """Serve until the input ends; in a child, be the command."""
    for name in ("_prepare_config_parser", "_prepare_parser"):
        parser = getattr(yt_binary, name)()
        setattr(yt_binary, name, lambda made=parser: made)
    # A command took four times as long: its process collected, and so copied, all of this.
    gc.freeze()
    while line := sys.stdin.readline():
        arguments, folder = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(PATIENCE_SECONDS)
            for number, name in enumerate(("in", "out", "err")):
                os.dup2(os.open(Path(folder, name), os.O_RDWR | os.O_CREAT), number)
            sys.stdin = open(0)  # noqa: SIM115 - the old one has seen a pipe
            sys.argv = ["yt", *arguments]
            return yt_binary.main()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(serve())  # type: ignore[arg-type]
