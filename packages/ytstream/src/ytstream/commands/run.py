"""`run`: streams until it is told to stop."""

import argparse
import os
from contextlib import ExitStack

from ..instance.lock import alone
from ..job import JobContext
from ..recovery import start
from ..settings.spark_conf import COLLECTOR
from .command import Command


def _before(context: JobContext) -> None:
    """Wait for tables on a cluster: YTsaurus starts a lost driver again.

    Errors would use up its attempts. A person is told at once.
    """
    if "YT_OPERATION_ID" in os.environ:
        from ..query import supervisor

        supervisor.wait_mounted(context)


def _run(context: JobContext, given: argparse.Namespace) -> None:
    if given.dry_run:
        print(*start.preview(context), "nothing was changed", sep="\n")
        return
    from ..query import supervisor

    # The lock goes first: Spark may take long to close. The query has stopped by then, and a task
    # that hangs in Spark commits nothing once another process has raised the epoch.
    with ExitStack() as session, alone(context):
        supervisor.run(context, session)


COMMAND = Command(
    name="run",
    help="Run the job in this process. On Ctrl-C it finishes its micro-batch.",
    run=_run,
    before=_before,
    starts_jvm=True,
    early_jvm=COLLECTOR,
    needs_stopped_job=True,
    changes="outputs, ledger, consumer and checkpoint",
)
