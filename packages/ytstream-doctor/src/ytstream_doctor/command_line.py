"""``python -m ytstream doctor PATH``."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ytstream import log
from ytstream.errors import JobError, RestartableError
from ytstream.errors.error_codes import ErrorCode
from ytstream.version import __version__

from . import report_text
from .checks import (
    batch_functions,
    batch_reads,
    references,
    spark_confs,
    state,
    streams,
    submit_commands,
    user_code,
)
from .reading import inspected_job
from .rules import RULES, Finding


def main(words: Sequence[str]) -> int:
    """Run the command; return 0 if nothing was found, 1 if something was.

    2 is for a job with queries that were not understood, so that no finding proves nothing.
    """
    given = _parser().parse_args(words)
    try:
        found, read = diagnosed(given.path, given.proxy)
    except (JobError, RestartableError) as error:
        log.fail(str(error), error.code)
        return 2
    except RecursionError:
        why = "an expression is nested too deeply to be followed"
        log.fail(f"{given.path}: {why}; name the job's other files", ErrorCode.USER_CODE)
        return 2
    found = [finding for finding in found if finding.rule not in given.accept]
    show = (
        report_text.document(str(given.path), found, read)
        if given.json
        else report_text.text(found, read)
    )
    code = 1 if found and (read.queries or read.is_known) else 0 if read.is_known else 2
    return _print(show) or code


def _print(text: str) -> int:
    """Print; return 2 if that fails, but not because the reader has read enough (``| head``)."""
    try:
        print(text, flush=True)
    except OSError as error:
        # Python writes what is left when it ends, and would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0
        log.fail(f"cannot write the findings: {error.strerror}", ErrorCode.FILE)
        return 2
    return 0


def diagnosed(
    path: Path, proxy: str | None = None
) -> tuple[list[Finding], inspected_job.InspectedJob]:
    """Return the findings of a job, in the order of its files, and what was read.

    Raises JobError for a path without a job; with ``proxy`` also what a client of it raises.
    """
    read = inspected_job.read(path)
    found = [
        *spark_confs.findings(read),
        *streams.findings(read),
        *user_code.findings(read),
        *state.findings(read),
        *submit_commands.findings(read),
        *batch_reads.findings(read),
        *batch_functions.findings(read),
    ]
    asked: Mapping[str, Mapping[str, Any]] = {}
    if proxy is not None:
        from .checks import cluster_tables  # it imports PySpark

        tables = cluster_tables.read(read, proxy)
        found += cluster_tables.findings(read, tables)
        asked = tables.found
    found += references.findings(read, asked)
    return sorted(set(found)), read


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ytstream", description="Programs of ytstream that need no job."
    )
    parser.add_argument("--version", action="version", version=f"ytstream {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    what = "Name what loses, repeats or stalls rows in a SPYT job that was written by hand."
    command = commands.add_parser("doctor", help=what, description=what)
    command.add_argument("path", metavar="PATH", type=Path, help="the job's folder, or one file")
    command.add_argument(
        "--proxy", metavar="P", help="the cluster: also check the job's tables (token: YT_TOKEN)"
    )
    command.add_argument(
        "--accept",
        metavar="RULE",
        action="append",
        default=[],
        choices=sorted(RULES),
        help="skip a rule that you have checked. You can repeat it",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    return parser
