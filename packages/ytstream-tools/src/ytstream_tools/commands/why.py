"""`why`: the most likely cause of a job's trouble, with its command."""

import argparse
from pathlib import Path

from ytstream.commands.command import Command, RequiredTables
from ytstream.job import JobContext


def _run(unconnected: JobContext, given: argparse.Namespace) -> int:
    from ..why import causes, facts, report

    found = facts.collect(unconnected)
    known = list(causes.causes_of(found))
    print(report.text(found, known))
    if not known:
        print(f"for a ticket, without secrets and rows: {report.write(found, given.ticket)}")
    return 0 if known else 1


def _arguments(parser: argparse.ArgumentParser) -> None:
    where = "where a file for a ticket goes if no cause is known (default: this folder)"
    parser.add_argument("--ticket", metavar="FOLDER", type=Path, default=Path(), help=where)


COMMAND = Command(
    name="why",
    help="Name the most likely cause of a problem and the command that fixes it. Changes nothing.",
    tables=RequiredTables.NONE,
    run=_run,
    arguments=_arguments,
    # A cluster that cannot be reached is one of the causes.
    without_cluster=_run,
)
