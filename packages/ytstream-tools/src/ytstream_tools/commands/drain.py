"""`drain`: lets the job finish the rows that are there, then stops it."""

import argparse
from functools import partial

from ytstream.commands.command import Command, RequiredTables
from ytstream.job import JobContext


def _run(context: JobContext, given: argparse.Namespace) -> None:
    from ..submitting import draining

    say = partial(print, flush=True)
    print(draining.rehearse(context) if given.dry_run else draining.drain(context, say))


COMMAND = Command(
    name="drain",
    help="Wait until the job has read all current rows, then stop it.",
    run=_run,
    tables=RequiredTables.MOUNTED,
    changes="the ledger, which holds the request to stop",
)
