"""`rows`: puts rows of the sample into the queues."""

import argparse

from ytstream.commands.command import Command, positive
from ytstream.declaration import user_errors
from ytstream.job import JobContext


def _run(context: JobContext, given: argparse.Namespace) -> None:
    with user_errors.user_code("sample/ cannot be imported"):
        from sample import SAMPLE

    from ..demo import demo_tables

    print(demo_tables.fill(context, SAMPLE, given.count, is_dry=given.dry_run))


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=positive, default=1_000, help="default: 1000")


COMMAND = Command(
    name="rows",
    help="Put sample rows into the queues of a minicluster.",
    run=_run,
    arguments=_arguments,
    changes="the queues",
)
