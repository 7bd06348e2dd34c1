"""`page`: some hours of the ledger as one HTML file."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from ytstream.commands.command import Command, RequiredTables
from ytstream.job import JobContext

_MOST_HOURS = 8_784
"""A year."""


def _run(context: JobContext, given: argparse.Namespace) -> None:
    from ..report import html_page

    print(html_page.write(context, given.hours, given.output, datetime.now(UTC)))


def _hours(text: str) -> float:
    number = float(text)
    if not 0 < number <= _MOST_HOURS:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most {_MOST_HOURS}")
    return number


def _arguments(parser: argparse.ArgumentParser) -> None:
    where = "default: dist/page.html"
    parser.add_argument(
        "--output", type=Path, default=Path("dist/page.html"), metavar="FILE", help=where
    )
    length = "hours of history before the last batch (default: 24)"
    parser.add_argument("--hours", type=_hours, default=24.0, metavar="N", help=length)


COMMAND = Command(
    name="page",
    help="Write an HTML file with lag, rate, batches and rejected rows. Needs only the ledger.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.NONE,
)
