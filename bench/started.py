"""A job that says when the parts of its start begin and end.

    python -m bench.started TIMES PACKAGE

Runs ``python -m PACKAGE run`` in this process; each part is a line of TIMES: its name, and the
seconds since 1970 of its begin and its end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

IMPORTS = "imports"
PARTS = {
    "python": "Python and its imports",
    "look": "settings, tables, and whether the start may be",
    "lock": "the lock that keeps a second instance out",
    "jvm": "the JVM",
    "session": "Spark's session",
    "recovery": "recovery: epoch, checkpoint folder, consumer",
    "plan": "the plan, looked at and started",
    "batch": "the first batch, until it is handed over",
    "commit": "its commit",
    "rest": "the rest",
}
"""Name of a part -> how people read it, in the order of time."""


def main(times: Path, package: str) -> None:
    """Run the job with its parts timed."""
    began = time.time()
    import runpy

    from ytstream import cli

    command = cli._command

    def imported(*words: Any) -> int:
        """Go on with the command: its JVM has begun, and PySpark is imported."""
        _time_parts(times)
        _say(times, IMPORTS, began)
        return command(*words)

    vars(cli)["_command"] = imported
    sys.argv = [package, "run"]
    runpy.run_module(package, run_name="__main__", alter_sys=True)


def _time_parts(times: Path) -> None:
    from ytstream.instance import lock
    from ytstream.query import batch, pipeline, supervisor
    from ytstream.recovery import start
    from ytstream.spark import jvm_process

    def timed(owner: Any, name: str, part: str) -> None:
        setattr(owner, name, _timed(getattr(owner, name), times, part))

    # The session's time includes it.
    timed(jvm_process, "started", "jvm")
    timed(supervisor, "open_session", "session")
    timed(lock.InstanceLock, "acquire", "lock")
    for name in ("claim", "start"):
        timed(start, name, "recovery")
    for name in ("flow_of", "start"):
        timed(pipeline, name, "plan")
    timed(batch.Batch, "__call__", "batch")


def _timed(call: Callable[..., Any], times: Path, part: str) -> Callable[..., Any]:
    @wraps(call)
    def run(*words: Any, **named: Any) -> Any:
        began = time.time()
        try:
            return call(*words, **named)
        finally:
            _say(times, part, began)

    return run


def _say(times: Path, part: str, began: float) -> None:
    with times.open("a", encoding="utf-8") as out:
        print(part, began, time.time(), file=out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
