"""`seal`: closes a period of an archive by hand."""

import argparse

from ytstream.commands.command import Command, RequiredTables
from ytstream.job import JobContext


def _run(context: JobContext, given: argparse.Namespace) -> None:
    from ..status import sealing

    print(*sealing.seal(context, given.period, given.output, dry_run=given.dry_run), sep="\n")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "period", metavar="PERIOD", help="its beginning, e.g. 2026-11-21T10:00:00Z; those before "
        "it are closed, too",
    )  # fmt: skip
    parser.add_argument(
        "--output", metavar="NAME", help="the archive (default: the only one of STATIC)"
    )


COMMAND = Command(
    name="seal",
    help="Close a period of an archive now, whatever rows of it are still to come.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.MOUNTED,
    changes="the ledger, which holds the request",
)
