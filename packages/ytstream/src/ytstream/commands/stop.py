"""`stop`: asks the running job to end."""

import argparse

from yt.common import YtError

from ..instance import stop_request
from ..job import JobContext
from ..provisioning import job_objects
from .command import Command, RequiredTables


def _run(context: JobContext, given: argparse.Namespace) -> None:
    if given.dry_run:
        print(stop_request.rehearse(context))
        return
    try:
        print(stop_request.stop(context, print))
    except YtError:  # not before: a queue that is not mounted does not hinder it
        job_objects.require(context, "the job cannot be asked to stop", declared=False)
        raise


COMMAND = Command(
    name="stop",
    help="Ask the job, wherever it runs, to finish its micro-batch and end. Waits for it.",
    run=_run,
    tables=RequiredTables.NONE,
    changes="the ledger, which holds the request",
)
