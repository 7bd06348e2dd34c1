"""`logs`: the output of driver and executors."""

import argparse

from ytstream.commands.command import Command, RequiredTables
from ytstream.job import JobContext


def _run(context: JobContext, given: argparse.Namespace) -> None:
    from ..status import operation_logs

    for line in (operation_logs.follow if given.follow else operation_logs.logs)(context):
        print(line, flush=True)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--follow", action="store_true", help="continue until the operation ends")


COMMAND = Command(
    name="logs",
    help="Show the output of the job's driver and executors.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.NONE,
)
