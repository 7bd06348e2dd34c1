"""`reference`: a table for lookups by key, built from a static table."""

import argparse

from ytstream.commands.command import Command, RequiredTables, positive
from ytstream.job import JobContext

from .capture import names


def _run(context: JobContext, given: argparse.Namespace) -> None:
    from ..reference import building, screen

    wanted = building.Wanted(given.source, given.link, tuple(given.key), given.tablets)
    if given.dry_run:
        print(*building.rehearse(context, wanted), sep="\n")
        return
    building.build(context, wanted, screen.Screen())


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", metavar="TABLE", required=True, help="the static table"
    )
    parser.add_argument(
        "--to", dest="link", metavar="LINK", required=True,
        help="the link that jobs look keys up in: `[references]` of the configuration names it",
    )  # fmt: skip
    parser.add_argument(
        "--key", type=names, metavar="COLUMN,...", required=True, help="the columns of the key"
    )
    parser.add_argument(
        "--tablets", type=positive, metavar="N",
        help="how many tablets the table has (default: one for each GiB)",
    )  # fmt: skip


COMMAND = Command(
    name="reference",
    help="Build a table for lookups by key from a static table, and switch a link to it.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.NONE,
    changes="the link, and the tables in the folder next to it",
)
