"""`preview`: sample rows and what becomes of them, in the terminal, again on each save."""

import argparse
from contextlib import nullcontext, suppress

from ytstream.commands.command import Command, positive
from ytstream.connector.local_environment import QUICK
from ytstream.declaration import user_errors
from ytstream.job import JobContext

from ..repository import root_of


def _without_cluster(context: JobContext, given: argparse.Namespace) -> int:
    from ytstream.spark import session

    with user_errors.user_code("sample/ cannot be imported"):
        from sample import SAMPLE

    from rich.console import Console

    from ..preview import live_preview, quick_session

    job, console = context.job, Console()
    # Ctrl-C is how a person ends the watching.
    until_interrupted = suppress(KeyboardInterrupt) if given.watch else nullcontext()
    context = quick_session.context_of(job)
    with until_interrupted, session.opened(context, QUICK) as spark:
        quick_session.configure(spark)
        if given.watch:
            live_preview.watch(spark, root_of(job.package), job.package, console, given.rows)
        live_preview.show(spark, job, SAMPLE, console, given.rows)
    return 0


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=positive, default=20, help="rows to show (default: 20)")
    said = "go on, and show them again whenever a file is saved"
    parser.add_argument("--watch", action="store_true", help=said)


COMMAND = Command(
    name="preview",
    help="Show sample rows, output rows and rejected rows. Needs no cluster.",
    without_cluster=_without_cluster,
    names_cluster=lambda _: False,
    arguments=_arguments,
    starts_jvm=True,
    early_jvm=QUICK,
)
