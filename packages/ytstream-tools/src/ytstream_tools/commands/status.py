"""`status`: queues, offsets, lag and the last batches."""

import argparse

from ytstream import log
from ytstream.commands.command import Command, RequiredTables, positive
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext

from ..status import lag_thresholds


def _run(context: JobContext, given: argparse.Namespace) -> int:
    from ..status import job_status, status_json, status_text, status_watch

    if given.watch is not None:
        status_watch.watch(context, given.watch)
        return 0
    found = job_status.read(context)
    print((status_json if given.json else status_text).text(context, found))
    over = list(lag_thresholds.exceeded(found, given.max_lag, given.max_age))
    for line in over:
        log.fail(line, ErrorCode.LIMIT_EXCEEDED)
    return lag_thresholds.EXCEEDED if over else 0


def _arguments(parser: argparse.ArgumentParser) -> None:
    show = parser.add_mutually_exclusive_group()
    show.add_argument("--json", action="store_true", help="print JSON")
    show.add_argument(
        "--watch", nargs="?", type=positive, const=2, metavar="SECONDS",
        help="refresh the view every SECONDS seconds (default: 2); press Ctrl-C to exit",
    )  # fmt: skip
    parser.add_argument(
        "--max-lag", type=lag_thresholds.lag, metavar="ROWS|SECONDS",
        help="exit with 4 if more rows wait (5000), or one waits longer (300s)",
    )  # fmt: skip
    parser.add_argument(
        "--max-age", type=lag_thresholds.age, metavar="SECONDS",
        help="exit with 4 if the last batch ended longer ago. For queues that always have new rows",
    )  # fmt: skip


COMMAND = Command(
    name="status",
    help="Show queues, offsets, lag and the last batches. Needs no driver.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.MOUNTED,
)
