"""`capture`: a batch of production as a test of the repository."""

import argparse

from ytstream.commands.command import Command, RequiredTables
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext

from ..repository import root_of


def _run(context: JobContext, given: argparse.Namespace) -> None:
    from ..replay import batch_capture

    if (given.batch is None) == (given.rejected is None):
        raise JobError(
            "name a batch, or --rejected REASON",
            "capture 3-12, or capture failed",
            code=ErrorCode.USAGE,
        )
    root, batch = root_of(context.job.package), given.batch or ""
    print(batch_capture.capture(context, root, batch, given.rejected, given.without))


def names(text: str) -> list[str]:
    """argparse type: names of columns, separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _arguments(parser: argparse.ArgumentParser) -> None:
    said = "epoch and number as in the log, or `failed`: the one after the last"
    parser.add_argument("batch", nargs="?", metavar="BATCH", help=said)
    parser.add_argument(
        "--rejected", metavar="REASON", help="rows that REJECT rejected for this reason"
    )
    parser.add_argument(
        "--without", type=names, default=(), metavar="COLUMN,...", help="columns to skip"
    )


COMMAND = Command(
    name="capture",
    help="Save the rows of a batch as a test of the repository.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.MOUNTED,
)
