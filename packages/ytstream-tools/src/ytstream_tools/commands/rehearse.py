"""`rehearse`: the deployed version and the working tree over the same rows."""

import argparse
import shutil
import sys
from functools import partial
from pathlib import Path

from ytstream.commands.command import Command, RequiredTables, positive
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.recovery import positions_at_time

from .capture import names


def _run(context: JobContext, given: argparse.Namespace) -> int:
    from ..replay.rehearsal import RehearsalRequest, rehearse

    since = positions_at_time.parsed([given.since]) if given.since is not None else None
    wanted = RehearsalRequest(
        config=given.config,
        batches=given.batches,
        since=since,
        commit=given.commit,
        without=given.without,
        python=_python(given.python),
    )
    return rehearse(context, wanted, partial(print, flush=True))


def _python(given: str | None) -> str:
    """Return the interpreter for the commit. Raises JobError for one that is not there."""
    if given is None:
        return sys.executable
    if (found := shutil.which(given)) is None:
        raise JobError(
            f"--python {given}: there is no such program",
            "name the interpreter of an environment that `make setup` made, such as "
            "../old/.venv/bin/python",
            code=ErrorCode.USAGE,
        )
    return str(Path(found).absolute())


def _arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--batches", type=positive, default=20, metavar="N", help="the last N batches (default: 20)"
    )
    which.add_argument(
        "--since",
        metavar="TIME",
        help="batches that ended after TIME, such as 2026-11-21T10:00 (UTC)",
    )
    said = "compare with it; default: the one that `submit` has noted"
    parser.add_argument("--commit", metavar="REVISION", help=said)
    parser.add_argument(
        "--python",
        metavar="FILE",
        help="run the commit with this interpreter, to compare two versions of Spark or of the "
        "runtime (default: this one)",
    )
    parser.add_argument(
        "--without", type=names, default=(), metavar="COLUMN,...", help="columns to ignore"
    )


COMMAND = Command(
    name="rehearse",
    help="Run the deployed commit and the working tree over the last batches. Compare outputs.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.MOUNTED,
    starts_jvm=True,
)
