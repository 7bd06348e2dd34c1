"""`migrate`: adopts the stopped job after its guarantee, its outputs or its queues have changed."""

import argparse

from ..job import JobContext
from ..recovery import repositioning
from ..recovery.lock import alone
from .command import Command


def _run(context: JobContext, given: argparse.Namespace) -> None:
    if given.dry_run:
        print(*repositioning.rehearse_migrate(context), sep="\n")
        return
    from ..spark import jvm_process, session

    with alone(context), jvm_process.explained_jvm():
        print(*repositioning.migrate(context, session.open_tablets(context)), sep="\n")


COMMAND = Command(
    name="migrate",
    help="After the guarantee or the outputs were changed, or a queue removed: take the job over.",
    run=_run,
    starts_jvm=True,
    needs_stopped_job=True,
    changes="the ledger, the consumer and the marks on outputs",
)
