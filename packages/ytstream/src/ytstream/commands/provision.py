"""`provision`: creates what the job needs on the cluster."""

import argparse

from ..job import JobContext
from ..provisioning import job_objects
from ..recovery import emptied_totals
from .command import Command, RequiredTables


def _run(context: JobContext, given: argparse.Namespace) -> None:
    if given.dry_run:
        print(*job_objects.findings(context), "nothing was changed", sep="\n")
        return
    emptied_totals.resume(context)  # its table has no path, but is there
    done = job_objects.provision(context) or ["everything is in place already"]
    print(*done, sep="\n")


COMMAND = Command(
    name="provision",
    help="Create, mount and register what the job needs. You can repeat it.",
    run=_run,
    tables=RequiredTables.NONE,
    changes="tables, folders, the consumer and its registrations",
)
